"""Names of runs in tables: by what differs, unless the user named the directories."""

from __future__ import annotations

from pathlib import Path

import pytest

from seq2seq_attn.config import Config, load_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.evaluation.names import differences, run_names

DATED = [Path("runs/2026-11-22-quickstart-s1"), Path("runs/2026-11-22-quickstart-s1-2")]


def configs(*settings: str) -> list[Config]:
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
            ("model.attention.options.attention_size=32", "model.attention.options.attention_size=64"),
            ["attention.attention_size=32", "attention.attention_size=64"],
        ),
        (("model.readout_size=null", ""), ["readout_size=null", "readout_size=96"]),
    ],
)
def test_runs_that_train_named_are_named_by_what_differs(settings: tuple[str, str], names: list[str]) -> None:
    assert run_names(DATED, configs(*settings)) == names


def test_names_that_the_user_gave_are_kept() -> None:
    paths = [Path("runs/mine"), Path("runs/other")]
    assert run_names(paths, configs("", "model.hidden_size=8")) == ["mine", "other"]


@pytest.mark.parametrize("settings", [("seed=1", "seed=2"), ("", "train.device=cpu")])
def test_runs_that_differ_in_nothing_trained_have_their_directories_names(settings: tuple[str, str]) -> None:
    assert run_names(DATED, configs(*settings)) == [path.name for path in DATED]


def test_too_many_differences_make_no_name() -> None:
    assert differences([load_config(["quickstart"]), load_config(["tutorial"])]) is None


def test_the_same_run_twice_is_an_error() -> None:
    with pytest.raises(UsageError, match="the same path twice; name each once"):
        run_names([DATED[0], DATED[0]], configs("", ""))
