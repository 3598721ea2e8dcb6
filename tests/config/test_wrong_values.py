"""Wrong values and files as strangers write them: one short line with the key and the value, in a
moment."""

import os
import time
from pathlib import Path

import pytest

from seq2seq_attn.config import Config, config_from_dict, dump_config, load_config
from seq2seq_attn.config.explain import all_keys
from seq2seq_attn.errors import UsageError

MAX_CPU_S = 10.0
"""Not the minutes that a hostile file can cost; measuring coverage makes PyYAML's scanner three
times as slow."""


def refusal(*overrides, config_names=()):
    began_at = time.process_time()
    with pytest.raises(UsageError) as caught:
        load_config(config_names, overrides)
    text = str(caught.value)
    assert time.process_time() - began_at < MAX_CPU_S
    assert "\n" not in text
    assert len(text) < 550, text
    return text


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=true", "seed=true"),
        ("train.optimizer.learning_rate=.nan", "train.optimizer.learning_rate=nan"),
        ("train.optimizer.betas=[1,1]", "train.optimizer.betas.0=1"),
        ("train.optimizer.betas=0.9", "train.optimizer.betas=0.9: expected two numbers"),
        ("model.hidden_size=1e9", "65536"),
        ("model.embedding_size=", "'model.embedding_size=': expected KEY=VALUE"),
        ("data.test={a: 5}", "data.test.a=5"),
        ("data.tokenizer.name=bpe", "data.tokenizer.name='bpe': expected 'spacy', 'sentencepiece'"),
        ("name=a\udcff", "not valid text"),
        (".".join("a" * 2000) + "=1", "'a.a.a.a"),
        ("seed=!!int x", "seed='!!int x'"),
        ("seed=" + "9" * 6000, "seed='999"),
        ("seed=" + "[" * 5000, "seed='[[["),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(override, message):
    assert message in refusal(override)


def test_only_the_first_of_many_mistakes_are_reported():
    text = refusal(
        "seed=a", "model.hidden_size=a", "train.batch.size=a", "search.beam_size=a", "name=[1]"
    )
    assert text.count("expected") == 3
    assert text.endswith("2 more")


def test_no_key_takes_a_list_of_lists_or_a_nested_mapping():
    """Except the options of attentions and scorers; those of search methods are checked by the
    method."""
    for key in [key for key in all_keys() if key not in ("name", "model.attention.options")]:
        assert refusal(f"{key}=[[1]]").startswith(key)
        if key not in ("search", "search.scorers"):
            assert key in refusal(f"{key}={{a: {{b: 1}}}}")


@pytest.mark.parametrize(
    "values",
    [
        {"name": "no"},
        {"name": "1e3"},
        {"name": "a\nb\u2028c"},
        {
            "model": {
                "attention": {
                    "options": {"x": [1, 0.5, "1", None, True, "1e3", ".inf", "2026-01-01"]}
                }
            }
        },
        {"data": {"limit": {"train": 3}, "test": {"1": "a"}}},
        Config().model_dump(),
    ],
)
def test_a_configuration_is_the_same_after_dump_and_load(values, tmp_path):
    config = config_from_dict(values)
    path = tmp_path / "dumped.yaml"
    path.write_text(dump_config(config), "utf-8")
    assert load_config([str(path)]) == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "got null"),
        ("\ufeff# nothing yet\n{}", "got {}"),
        ("- 1\n", "got [1]"),
        ("a: [1\n", "not readable YAML"),
        ("seed: 1\ntrain: {}\nseed: 2\n", "line 3: 'seed' is already set in line 1"),
        ("name: &a x\ntrain: {device: *a}\n", "line 2: an alias"),
        (f"a: [{'[], ' * 200_000}]", "10,000 values"),
        ("seed: " + "[" * 100_000, "20 levels"),
        ("seed: !!int x\n", "not readable YAML"),
        ("seed: !!python/object/apply:os.system [true]\n", "python/object"),
        (b"name: \xff\n", "0xff"),
        (b"name: \0\n", "not readable YAML"),
        ("# " + "x" * (1 << 20), "1 MiB"),
        ("extends: 5\n", "extends=5"),
        ("extends: mine.yaml\n", "extends itself"),
        ("extends: tutoral\n", "'tutorial'"),
        ("extends: [" + "x" * 10_000 + "]\n", "xxx"),
        ("model: {1: 2}\n", "'model.1'"),
        ("? [a, b]\n: 1\n", "not readable YAML"),
    ],
)
def test_a_wrong_file_is_one_short_line(text, message, in_tmp_path):
    Path("mine.yaml").write_bytes(text.encode() if isinstance(text, str) else text)
    assert message in refusal(config_names=("mine.yaml",))


def test_a_file_may_not_extend_itself_by_another_name(tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text(f"extends: ../{tmp_path.name}/mine.yaml\n", "utf-8")
    assert "extends itself" in refusal(config_names=(str(mine),))


def test_plain_values_are_those_of_yaml_1_2(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "\ufeffmodel: {hidden_size: 7}\nname: 2026-01-01\n",
        encoding="utf-8",
    )
    settings = [
        "train.optimizer.learning_rate=1e-3",
        "train.max_updates=1_000",
        "model.dropout.embedding=.5",
    ]
    settings += [
        "seed=010",
        "data.source_language=no",
        "train.max_epochs=null",
        "data.tokenizer.lowercase=yes",
    ]
    config = load_config([str(path)], settings)
    assert (config.seed, config.name, config.data.source_language) == (10, "2026-01-01", "no")
    assert (config.train.max_updates, config.model.hidden_size) == (1000, 7)
    assert config.train.optimizer.learning_rate == 1e-3
    assert "train.max_epochs='1:30'" in refusal("train.max_epochs=1:30")


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    for name in (str(tmp_path / "pipe.yaml"), str(tmp_path / "nowhere.yaml"), "tutoral", "xyzzy"):
        assert name in refusal(config_names=(name,))


@pytest.mark.parametrize(
    "setting",
    [
        "search.max_length_extra=1001",
        "search.num_samples=1001",
        "search.n_best=1001",
        f"search.prefix={'a' * 1_001}",
    ],
)
def test_values_that_exhaust_memory_or_time_are_refused(setting):
    assert setting.partition("=")[0] in refusal(setting)
