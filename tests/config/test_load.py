import pytest

from seq2seq_attn.config import (
    Config,
    config_from_dict,
    dump_config,
    load_config,
    packaged_config_names,
    with_default,
)
from seq2seq_attn.errors import UsageError


def write(directory, name, text):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return str(path)


@pytest.mark.parametrize("name", packaged_config_names())
def test_packaged_configs_load_and_dump_to_themselves(name, tmp_path):
    config = load_config([name])
    assert load_config([write(tmp_path, "dumped.yaml", dump_config(config))]) == config


def test_base_is_the_defaults():
    assert load_config(["base"]) == load_config() == Config()


def test_later_sources_win_and_overrides_win_over_all(tmp_path):
    one = write(tmp_path, "one.yaml", "seed: 5\ntrain: {max_epochs: 3, batch: {size: 7}}\n")
    two = write(tmp_path, "two.yaml", "train: {batch: {accumulate: 2}}\nseed: 6\n")
    config = load_config([one, two], ["seed=8"])
    assert (config.seed, config.train.max_epochs) == (8, 3)
    assert (config.train.batch.size, config.train.batch.accumulate) == (7, 2)


def test_extends_starts_from_files_beside_it_and_packaged_names(tmp_path):
    write(tmp_path, "mine/parent.yaml", "extends: tutorial\nseed: 11\nname: parent\n")
    child = write(tmp_path, "mine/child.yaml", "extends: parent.yaml\nname: child\n")
    config = load_config([child])
    assert (config.name, config.seed) == ("child", 11)
    assert config.data.tokenizer.name == "spacy"


def test_options_without_a_name_are_those_of_the_default_variant(tmp_path):
    mine = write(tmp_path, "mine.yaml", "model: {attention: {options: {attention_size: 7}}}\n")
    for name, options in (("additive", {"attention_size": 7}), ("dot", {})):
        overlay = write(tmp_path, f"{name}.yaml", f"model: {{attention: {{name: {name}}}}}\n")
        for config in (
            load_config([mine], {"model.attention.name": name}),
            load_config([mine, overlay]),
        ):
            assert config.model.attention.options == options


def test_options_may_be_given_before_the_name_of_their_variant():
    options = "model.attention.options.attention_size=64"
    name = "model.attention.name=key_value"
    for overrides in ([options, name], [name, options]):
        attention = load_config(["multi30k"], overrides).model.attention
        assert attention.options == {"attention_size": 64}
    former = ["model.attention.name=additive", options, "model.attention.name=dot"]
    assert load_config((), former).model.attention.options == {}


def test_limiting_one_split_keeps_the_other_limits(tmp_path):
    file = write(tmp_path, "one.yaml", "extends: base\ndata: {limit: 100}\n")
    for config in (
        load_config([file], ["data.limit.train=5"]),
        load_config((), ["data.limit=100", "data.limit.train=5"]),
    ):
        assert list(config.data.limit.model_dump().values()) == [5, 100, 100]
    assert load_config([file], ["data.limit.train=5", "data.limit=7"]).data.limit.train == 7


def test_a_later_file_replaces_test_sets(tmp_path):
    one = write(tmp_path, "one.yaml", "extends: base\nname: one\ndata: {test: {a: x, b: y}}\n")
    two = write(tmp_path, "two.yaml", "data: {test: {c: z}}\n")
    child = write(tmp_path, "child.yaml", "extends: one.yaml\ndata: {test: {c: z}}\n")
    for config in (load_config([one, two]), load_config([child])):
        assert config.data.test == {"c": "z"}
    assert load_config([one], ["data.test.c=z"]).data.test == {"a": "x", "b": "y", "c": "z"}
    assert load_config([one], ["data.test.c=z", "data.test.d=u"]).data.test.keys() == {*"abcd"}
    assert load_config([one], ["data.test={}", "data.test.c=z"]).data.test == {"c": "z"}


def test_an_empty_mapping_replaces_and_other_objectives_and_options_are_merged(
    tmp_path,
):
    both = ["objective/guided", "objective/coverage"]
    assert load_config(both).train.objectives.keys() == {"guided", "coverage"}
    assert load_config(both, ["train.objectives={}"]).train.objectives == {}
    none = write(tmp_path, "none.yaml", "train: {objectives: {}}\n")
    assert load_config([*both, none]).train.objectives == {}
    only = load_config(both, ["train.objectives={}", "train.objectives.entropy.weight=0.5"])
    assert only.train.objectives.keys() == {"entropy"}
    heavier = load_config(both, ["train.objectives.guided.weight=0.25"]).train.objectives
    assert (heavier.keys(), heavier["guided"].weight) == ({"guided", "coverage"}, 0.25)
    attention = load_config(["multi30k"], ["model.attention.options={}"]).model.attention
    assert (attention.name, attention.options) == ("additive", {})
    assert load_config(["multi30k"]).model.attention.options != {}


def test_overlays_alone_change_the_default_configuration(tmp_path, caplog):
    caplog.set_level("INFO")
    alone = ["tokenizer/spacy", "attention/dot"]
    assert load_config(with_default(alone)) == load_config(["multi30k", *alone])
    own = write(tmp_path, "own.yaml", "seed: 11\n")
    for complete in (
        ["quickstart"],
        ["attention/dot", "quickstart"],
        ["typos/finder"],
        [own],
        [own, "attention/dot"],
    ):
        assert with_default(complete) == complete
    assert with_default([]) == ["multi30k"]
    assert ["multi30k" in message for message in caplog.messages] == [True, True]


def test_overrides_are_yaml_and_may_hold_an_equals_sign():
    config = load_config(
        (), ["train.optimizer.betas=[0.8, 0.9]", "train.optimizer.clip_norm=null", "data.train=a=b"]
    )
    assert (config.train.optimizer.betas, config.train.optimizer.clip_norm) == ((0.8, 0.9), None)
    assert config.data.train == "a=b"
    for text in ("😀", "ä: b", "\x7f", "\x85"):
        assert load_config((), {"data.train": text}).data.train == text


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model.hiden_size=3", r"model\.hidden_size"),
        ("train.learning_rate=3", r"train\.optimizer\.learning_rate"),
        ("train.objectives.guided.option.x=3", r"'train\.objectives\.guided\.option'"),
        ("seed", r"'seed': expected KEY=VALUE"),
        ("=3", r"'=3': expected KEY=VALUE"),
    ],
)
def test_mistakes_name_the_key_and_the_fix(override, message):
    with pytest.raises(UsageError, match=message):
        load_config((), [override])


def test_a_key_that_resembles_nothing_has_no_suggestion():
    with pytest.raises(UsageError, match=r"'xyzzy'$"):
        config_from_dict({"xyzzy": 1})


def test_a_name_says_which_files_were_merged(tmp_path):
    mine = write(tmp_path, "mine.yaml", "seed: 3\n")
    child = write(tmp_path, "child.yaml", "extends: tutorial\n")
    for sources, name in (
        ([], "base"),
        ([mine], "mine"),
        (["tutorial", mine], "tutorial+mine"),
        (["quickstart", "attention/bilinear"], "quickstart+bilinear"),
        (["tutorial", "attention/fixed", "tokenizer/characters"], "tutorial+fixed+characters"),
        (["attention/dot", "tokenizer/spacy"], "dot+spacy"),
        ([mine, "quickstart"], "quickstart"),
        ([child], "tutorial+child"),
        ([child, mine], "tutorial+child+mine"),
    ):
        assert load_config(sources).name == name
    assert load_config(["quickstart", mine], ["name=other"]).name == "other"
