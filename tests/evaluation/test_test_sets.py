"""Finding the test sets of runs: what is refused."""

from pathlib import Path

import pytest

from seq2seq_attn.config import Config, load_config
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.test_sets import find_sets
from seq2seq_attn.run import Run
from seq2seq_attn.train.loop import train
from tests.train.conftest import toy_settings, write_toy_corpus


@pytest.mark.parametrize(("key", "splits"), [("test", ()), ("valid", ("valid",))])
def test_corpora_with_different_limits_are_refused(tmp_path, monkeypatch, key, splits):
    monkeypatch.chdir(tmp_path)
    settings = ["data.limit={train: 40, valid: 9, test: 9}", "data.tokenizer.name=characters"]
    configs = [
        load_config(["quickstart"], [*settings, f"data.limit.{key}={number}"]) for number in (5, 6)
    ]
    runs = [Run(tmp_path / name) for name in "ab"]
    with pytest.raises(UsageError, match=r"b and .*a .*test sets"):
        find_sets(runs, configs, splits)


def with_data(config: Config, **changes: object) -> Config:
    return config.model_copy(update={"data": config.data.model_copy(update=changes)})


def test_pairs_set_aside_from_another_text_are_not_scored(tmp_path, monkeypatch, caplog):
    """They would be training pairs of the run."""
    monkeypatch.chdir(tmp_path)
    write_toy_corpus(Path("text"))
    settings = [one for one in toy_settings(Path("text")) if not one.startswith("data.valid")]
    config = load_config((), [*settings, "train.max_updates=1"])
    run = train(config, run_dir=Path("run"))
    [before] = find_sets([run], [config], ["valid"])
    assert find_sets([run], [with_data(config, extra=["gone"])], ["valid"]) == [before]

    for path in (Path("text/train.de"), Path("text/train.en")):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:80]))
    message = "run .*data.train='text/train'.*--source and --reference"
    with pytest.raises(UserError, match=message):
        find_sets([run], [config], ["test", "valid"])
    again = train(config, run_dir=Path("again"))
    with pytest.raises(UserError, match=message):
        find_sets([again, run], [config] * 2, ["valid"])
    [after] = find_sets([again], [config], ["valid"])
    assert after != before

    caplog.clear()
    assert len(find_sets([run], [config], ["train"])[0].source) < len(before.source) * 10
    [warning] = caplog.messages
    assert "--split train" in warning
    caplog.clear()
    find_sets([again], [config], ["train"])
    assert not caplog.messages

    assert len(find_sets([run], [config], ["test"])[0].source) == 20
    [pairs] = find_sets(
        [run], [config], source=Path("text/train.de"), references=[Path("text/train.en")]
    )
    assert len(pairs.source) == 80
    assert len(find_sets([run], [with_data(config, valid="text/valid")], ["valid"])[0].source) == 24


def test_pairs_set_aside_for_the_other_direction_are_refused(tmp_path, monkeypatch):
    """Set aside by the sources of the reverse model, they would be training pairs of it."""
    monkeypatch.chdir(tmp_path)
    write_toy_corpus(Path("text"))
    settings = [
        *toy_settings(Path("text")),
        "train.objectives={agreement: {}}",
        "train.max_updates=1",
    ]
    with_valid = train(load_config((), settings), run_dir=Path("with-valid")).reverse
    [valid] = find_sets([with_valid], [with_valid.config], ["valid"])
    assert valid.source == Path("text/valid.en").read_text().splitlines()

    reverse = train(load_config((), [*settings, "data.valid=null"]), run_dir=Path("run")).reverse
    with pytest.raises(UserError, match="run/reverse"):
        find_sets([reverse], [reverse.config], ["valid"])
    [test] = find_sets([reverse], [reverse.config], ["test"])
    assert test.source == Path("text/test.en").read_text().splitlines()
