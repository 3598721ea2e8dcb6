"""Values that no setting may have: each is told in one line with the key, the value and what is allowed."""

import re

import pytest

from seq2seq_attn.config import Config, config_from_dict, dump_config, load_config
from seq2seq_attn.config.explain import all_keys
from seq2seq_attn.errors import UsageError

FOREIGN = re.compile(r"[Ii]nput should|valid dictionary|instance of|Value error|pydantic|Config\b|parse")
TOO_LONG = 400


def refusal(*overrides: str) -> str:
    with pytest.raises(UsageError) as caught:
        load_config((), overrides)
    text = str(caught.value)
    assert not FOREIGN.search(text), text
    assert "\n" not in text
    assert len(text) < TOO_LONG, text
    return text


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=true", "seed=true"),
        ("seed=1.5", "seed=1.5"),
        ("seed=100000000000000000000000000", "seed=100000"),
        ("train.optimizer.learning_rate=1e400", "train.optimizer.learning_rate=inf"),
        ("train.optimizer.learning_rate=.nan", "train.optimizer.learning_rate=nan"),
        ("train.optimizer.learning_rate=true", "train.optimizer.learning_rate=true"),
        ("train.optimizer.betas=[1,1]", "train.optimizer.betas.0=1"),
        ("train.optimizer.betas=[true,false]", "train.optimizer.betas.0=true"),
        ("train.optimizer.betas=0.9", "train.optimizer.betas=0.9"),
        ("train.optimizer.betas=[0.9,0.9,0.9]", "train.optimizer.betas="),
        ("model.hidden_size=1e9", "model.hidden_size=1000000000.0"),
        ("model.embedding_size=", "'model.embedding_size='"),
        ("model.dropout.embedding=0.9999999999999999", "model.dropout.embedding=0.99"),
        ("data.test=corpus/test", "data.test='corpus/test'"),
        ("data.test={a: 5}", "data.test.a=5"),
        ("data.data_dir=3", "data.data_dir=3"),
        ("data.tokenizer.lowercase=3", "data.tokenizer.lowercase=3"),
        ("data.tokenizer.name=bpe", "data.tokenizer.name='bpe': expected 'spacy', 'sentencepiece'"),
        ("model=3", "model=3"),
        ("model.attention.options=3", "model.attention.options=3"),
        ("name=[1]", "name=[1]"),
        ("name=a\udcff", "name"),
        (".".join("a" * 2000) + "=1", "'a.a.a.a"),
        ("seed=!!int x", "seed='!!int x'"),
        ("seed=" + "9" * 6000, "seed="),
        ("seed=" + "[" * 5000, "seed="),
        ("seed=" + "x" * 100_000, "seed="),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_what_is_allowed(override: str, message: str) -> None:
    assert message in refusal(override)


def test_of_many_mistakes_the_first_are_told() -> None:
    text = refusal("seed=a", "model.hidden_size=a", "train.batch.size=a", "search.beam_size=a", "name=[1]")
    assert text.count("expected") == 3
    assert text.endswith("; and 2 more")


@pytest.mark.parametrize("key", [key for key in all_keys() if key != "name"])
@pytest.mark.parametrize("value", ["[[1]]", "{a: {b: 1}}"])
def test_no_key_takes_a_list_of_lists_or_a_nested_mapping(key: str, value: str) -> None:
    """But the options of attentions and scorers; those of search methods are checked by the method, before training."""
    takes_mapping = ("search", "search.scorers") if value[0] == "{" else ()
    if key not in ("model.attention.options", *takes_mapping):
        assert refusal(f"{key}={value}").startswith(key if value[0] == "[" else ("unknown", key))


@pytest.mark.parametrize(
    "override",
    ["seed=1e3", "data.tokenizer.lowercase=yes", "data.target_language=no", "train.max_epochs=null", "name=1e5x"],
)
def test_what_people_write_is_taken(override: str) -> None:
    load_config((), [override])


def test_no_is_norwegian() -> None:
    assert load_config((), ["data.target_language=no"]).data.target_language == "no"


@pytest.mark.parametrize(
    "values",
    [
        {"name": "no"},
        {"name": "1e3"},
        {"name": "null"},
        {"name": "a\nb\u2028c"},
        {"model": {"attention": {"options": {"x": [1, 0.5, "1", None, True, "1e3", ".inf", "2026-01-01"]}}}},
        {"data": {"limit": {"train": 3}, "test": {"1": "a"}}},
    ],
)
def test_a_configuration_is_the_same_after_dump_and_load(values: dict[str, object], tmp_path_factory) -> None:
    config = config_from_dict(values)
    path = tmp_path_factory.mktemp("dump") / "dumped.yaml"
    path.write_text(dump_config(config), encoding="utf-8")
    assert load_config([str(path)]) == config


def test_defaults_are_within_their_own_limits() -> None:
    assert config_from_dict(Config().model_dump()) == Config()
