"""Names of runs in tables: by what differs, unless the user named the directories. Arms: which runs
count as one."""

from pathlib import Path

import pytest

from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.evaluation.names import Arm, differences, find_arms, run_names

DATED = [Path("runs/2026-11-22-quickstart-s1"), Path("runs/2026-11-22-quickstart-s1-2")]


def configs(*settings):
    return [load_config(["quickstart"], setting.split()) for setting in settings]


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (("", "model.attention.name=bilinear"), ["attention=additive", "attention=bilinear"]),
        (("seed=1", "seed=2 model.hidden_size=8"), ["hidden_size=160", "hidden_size=8"]),
        (
            ("model.encoder.hidden_size=7", "model.hidden_size=8"),
            ["hidden_size=160, encoder.hidden_size=7", "hidden_size=8, encoder.hidden_size=96"],
        ),
        (
            (
                "data.max_length_ratio=9 search.max_length_ratio=4",
                "data.max_length_ratio=3 search.max_length_ratio=2",
            ),
            [
                "data.max_length_ratio=9.0, search.max_length_ratio=4.0",
                "data.max_length_ratio=3.0, search.max_length_ratio=2.0",
            ],
        ),
        (
            (
                "model.attention.options.attention_size=32",
                "model.attention.options.attention_size=64",
            ),
            ["attention.attention_size=32", "attention.attention_size=64"],
        ),
        (("model.readout_size=null", ""), ["readout_size=null", "readout_size=96"]),
        # that differ in nothing trained: as their directories
        (("seed=1", "seed=2"), [path.name for path in DATED]),
        (("", "train.device=cpu"), [path.name for path in DATED]),
    ],
)
def test_runs_that_train_named_are_named_by_what_differs(settings, names):
    assert run_names(DATED, configs(*settings)) == names


def test_names_that_the_user_gave_are_kept():
    paths = [Path("runs/mine"), Path("runs/other")]
    assert run_names(paths, configs("", "model.hidden_size=8")) == ["mine", "other"]
    assert run_names([Path("runs/two\nlines")], configs("")) == ["two lines"]


def test_too_many_differences_make_no_name():
    assert differences([load_config(["quickstart"]), load_config(["tutorial"])]) is None


def test_the_same_run_twice_is_an_error():
    with pytest.raises(UsageError, match="2026-11-22-quickstart-s1"):
        run_names([DATED[0], DATED[0]], configs("", ""))


def config(*settings, name="base"):
    return load_config((), [f"name={name}", *settings])


def test_runs_that_differ_in_their_seed_or_machine_alone_are_one_arm():
    configs = [
        config("seed=1"),
        config(
            "seed=2",
            "train.device=cpu",
            "train.num_threads=1",
            "data.data_dir=elsewhere",
            name="again",
        ),
        config("seed=1", "model.attention.name=fixed"),
        config("seed=3", "model.attention.name=fixed", "train.log_every_updates=7"),
        config("seed=1", "model.dropout.readout=0.1"),
    ]
    arms = find_arms(["a-s1", "a-s2", "b_seed1", "b_seed3", "c"], configs)
    assert arms == [Arm("a", (0, 1), (1, 2)), Arm("b", (2, 3), (1, 3)), Arm("c", (4,), (1,))]
    assert find_arms(["x", "y"], configs[1:3]) == [Arm("x", (0,), (2,)), Arm("y", (1,), (1,))]


def test_runs_of_different_training_text_are_no_arm():
    configs = [config(f"seed={seed}") for seed in (1, 2, 3)]
    arms = find_arms(["a-s1", "a-s2", "a-s3"], configs, ["one", "other", "one"])
    assert arms == [Arm("a-s1", (0, 2), (1, 3)), Arm("a-s2", (1,), (2,))]


def test_the_same_seed_twice_is_no_spread():
    configs = [config("seed=1"), config("seed=1"), config("seed=2")]
    arms = find_arms(["a-s1", "b-s1", "a-s2"], configs)
    assert arms == [Arm("a", (0, 2), (1, 2)), Arm("b", (1,), (1,))]


DIFFERENCE = ["attention=additive", "attention=fixed"]


@pytest.mark.parametrize(
    ("names", "configs", "expected"),
    [
        (["a-s1", "a-s11", "b-s1"], ["x", "x", "y"], ["a", "b"]),
        (["bias1", "bias11", "b-s1"], ["x", "x", "y"], ["bias", "b"]),
        (["runs/a/s1", "runs/a/s11", "runs/b/s1"], ["x", "x", "y"], ["a", "b"]),
        (["monday", "tuesday", "friday"], ["x", "x", "y"], DIFFERENCE),
        (
            ["2026-11-22-x-s1", "2026-11-22-x-s11", "2026-11-23-x+none-s1"],
            ["x", "x", "x+none"],
            DIFFERENCE,
        ),
    ],
)
def test_an_arm_is_named_by_what_its_runs_share(names, configs, expected):
    rows = [(1, "additive"), (11, "additive"), (1, "fixed")]
    settings = []
    for (seed, attention), name in zip(rows, configs, strict=True):
        settings.append(config(f"seed={seed}", f"model.attention.name={attention}", name=name))
    assert [arm.name for arm in find_arms(names, settings)] == expected
