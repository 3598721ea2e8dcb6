from __future__ import annotations

import json
import logging
import math
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.config import Config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train import checkpoint, loop, update, validate
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.distributed import Group
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.update import Updater, UpdateResult
from seq2seq_attn.train.validate import Validation, Validator
from tests.train.conftest import ConfigMaker

TIMES = {"elapsed_s", "seconds", "tokens_per_s"}
NO_TEXT = ("data.train=null", "data.valid=null", "data.test={}")
"""of the toy corpus, for runs on captions"""


def events(run: RunDir, kind: str | None = None) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, without what a clock says."""
    lines = [json.loads(line) for line in run.metrics_path.read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in line.items() if k not in TIMES} for line in lines if kind in (None, line["event"])]


def assert_same_end(run: RunDir, expected: RunDir) -> None:
    """Bit for bit: weights, moments, averages, random generators, the best model, counters, history."""
    (tensors, values, _), (expected_tensors, expected_values, _) = (
        checkpoint.load_state(r.last_dir) for r in (run, expected)
    )
    assert tensors.keys() == expected_tensors.keys()
    assert [name for name in tensors if not torch.equal(tensors[name], expected_tensors[name])] == []
    best, expected_best = run.load_best().tensors, expected.load_best().tensors
    assert [name for name in expected_best if not torch.equal(best[name], expected_best[name])] == []
    assert run.load_best().values == expected.load_best().values
    assert run.model_path.read_bytes() == expected.model_path.read_bytes()
    assert _counters(values["state"]) == _counters(expected_values["state"])
    assert events(run) == events(expected)


def _counters(state: dict[str, Any]) -> dict[str, Any]:
    """Without what a clock says."""
    return {**state, "elapsed_s": 0.0, "metrics_position": 0, "window": {**state["window"], "seconds": 0.0}}


class Killed(BaseException):
    """Stands for a SIGKILL: nothing may be done about it."""


def train_and_die(at_update: int, config: Config, **options: Any) -> None:
    """Train, and die before an update is noted: whatever was not on disk is lost."""
    train_step = Updater.train_step

    def mortal(self: Updater, batches: UpdateBatches, *, update: int, **settings: Any) -> UpdateResult:
        result = train_step(self, batches, update=update, **settings)
        if update == at_update:
            raise Killed
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "train_step", mortal)
        with pytest.raises(Killed):
            train(config, **options)


def test_a_training_leaves_a_run_that_translates(toy_config: ConfigMaker, tmp_path: Path) -> None:
    run = train(toy_config(), run_dir=tmp_path / "run")
    assert run.is_finished()
    assert {"config.yaml", "environment.json", "train.log", "metrics.jsonl", "model.safetensors", "last"} <= {
        path.name for path in run.path.iterdir()
    }
    assert len(list(run.path.glob("events.out.tfevents.*"))) == 1
    assert run.config() == toy_config("search.max_length_ratio=2")
    assert isinstance(load(run.path).translate(["Hund Katze"])[0].text, str)
    text = (run.path / "train.log").read_text(encoding="utf-8")
    assert "160 training pairs, 24 validation pairs, 10 updates per epoch" in text
    assert "hypothesis" in text


def test_a_run_says_how_long_translations_may_be(
    toy_config: ConfigMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The ratio comes from the training pairs unless it was chosen; a resume keeps it, with nothing to complain of."""
    long = tmp_path / "long"
    long.mkdir()
    (long / "train.de").write_text("ab\n" * 16)
    (long / "train.en").write_text("cdefghijklmnopq\n" * 16)
    settings = [f"data.train={long / 'train'}", f"data.data_dir={tmp_path}", "search.max_length_extra=0"]
    config = toy_config(*settings)
    run = train(config, run_dir=tmp_path / "run")
    assert run.config().search.max_length_ratio == 10.0  # 15 tokens and EOS of 2, and a quarter
    assert train(toy_config(*settings, "search.max_length_ratio=3"), run_dir=tmp_path / "3").config().search == (
        config.search.model_copy(update={"max_length_ratio": 3.0})
    )
    fixed = toy_config(*settings, "train.max_epochs=9")
    with pytest.raises(
        UsageError, match=r"search\.max_length_ratio=10: the run was started with 3, which a resume can"
    ):
        train(fixed, run_dir=tmp_path / "3", resume=True)
    for again in (config, run.config()):
        more = again.model_copy(update={"train": again.train.model_copy(update={"max_epochs": 3})})
        train(more, run_dir=run.path, resume=True)
    assert any("train.max_epochs: 3 in this session" in message for message in caplog.messages)
    assert not any("search" in message and "session" in message for message in caplog.messages)


def test_metrics_have_a_line_per_event(toy_config: ConfigMaker, tmp_path: Path) -> None:
    run = train(toy_config(), run_dir=tmp_path / "run")
    assert [(line["event"], line["update"]) for line in events(run)] == [
        *[("train", 3), ("train", 6), ("train", 9), ("validation", 10)],
        *[("train", 12), ("train", 15), ("train", 18), ("validation", 20), ("end", 20)],
    ]
    first = json.loads(run.metrics_path.read_text().splitlines()[0])
    assert first["loss"] == pytest.approx(math.log(23), rel=0.1)  # before learning: all characters alike
    assert first["learning_rate"] == 1e-3
    assert first["teacher_forcing_ratio"] == 1.0
    assert first["tokens_per_s"] > 0
    validation = events(run, "validation")[-1]
    assert validation["perplexity"] > 1
    assert 0 <= validation["bleu"] <= 100
    assert validation["signature"].startswith("nrefs:1|case:mixed")
    assert validation["num_pairs"] == 24
    assert [set(sample) for sample in validation["samples"]] == [{"source", "reference", "hypothesis"}] * 3
    assert len({sample["source"] for sample in validation["samples"]}) > 1
    end = events(run, "end")[0]
    assert end["reason"] == "train.max_epochs=2 reached"
    assert end["best_update"] in (10, 20)


def test_the_same_seed_gives_the_same_run_and_another_one_does_not(toy_config: ConfigMaker, tmp_path: Path) -> None:
    first, second = (train(toy_config(), run_dir=tmp_path / name) for name in ("a", "b"))
    assert_same_end(second, first)
    other = train(toy_config("seed=2"), run_dir=tmp_path / "c")
    assert events(other, "train") != events(first, "train")


ALL = (
    "train.optimizer.average_decay=0.9",
    "train.teacher_forcing={schedule: linear, start: 1.0, end: 0.2, num_updates: 15}",
    "train.schedule={name: cosine, warmup_updates: 3}",
    "train.label_smoothing=0.1",
    "train.batch.accumulate=2",
    "train.batch.size=8",
    "train.validation.every_updates=7",
    "train.checkpoint_every_updates=3",
)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_killed_and_resumed_equals_never_killed(toy_config: ConfigMaker, tmp_path: Path, precision: str) -> None:
    config = toy_config(*ALL, f"train.precision={precision}")
    expected = train(config, run_dir=tmp_path / "whole")
    run_dir = tmp_path / "killed"
    for at_update in (0, 5, 6, 13, 19):  # in the first update, within and at the end of a period, in the last
        train_and_die(at_update, config, run_dir=run_dir, resume=True)
    assert_same_end(train(config, run_dir=run_dir, resume=True), expected)


def test_ten_updates_are_five_and_five(toy_config: ConfigMaker, tmp_path: Path) -> None:
    # the validation at the end of a training is one more than an uninterrupted one has: it must not disturb
    fixed = "train.schedule={name: inverse_sqrt, warmup_updates: 3}"
    config, half = (toy_config(*ALL, fixed, f"train.max_updates={number}") for number in (10, 5))
    expected = train(config, run_dir=tmp_path / "whole")
    train(half, run_dir=tmp_path / "halves")
    resumed = train(config, run_dir=tmp_path / "halves", resume=True)
    tensors, expected_tensors = (checkpoint.load_state(run.last_dir).tensors for run in (resumed, expected))
    assert [name for name in tensors if not torch.equal(tensors[name], expected_tensors[name])] == []
    assert events(resumed, "train") == events(expected, "train")


@pytest.mark.parametrize("moment", ["update", "validation"])
@pytest.mark.parametrize(
    ("number", "error", "message"), [(signal.SIGINT, KeyboardInterrupt, "^$"), (signal.SIGTERM, SystemExit, "^143$")]
)
def test_a_signal_saves_and_leaves(
    toy_config: ConfigMaker,
    tmp_path: Path,
    moment: str,
    number: int,
    error: type[BaseException],
    message: str,
) -> None:
    config = toy_config("train.checkpoint_every_updates=1000")
    expected = train(config, run_dir=tmp_path / "whole")

    train_step, validate = Updater.train_step, Validator.validate

    def signalled_step(self: Updater, batches: UpdateBatches, *, update: int, **settings: Any) -> UpdateResult:
        if moment == "update" and update == 12:
            os.kill(os.getpid(), number)
        return train_step(self, batches, update=update, **settings)

    def signalled_validation(self: Validator, model: Seq2Seq) -> Validation:
        if moment == "validation":
            os.kill(os.getpid(), number)
        return validate(self, model)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "train_step", signalled_step)
        patch.setattr(Validator, "validate", signalled_validation)
        with pytest.raises(error, match=message):
            train(config, run_dir=tmp_path / "stopped")
    saved = checkpoint.load_state(tmp_path / "stopped" / "last").values["state"]
    assert (saved["update"], saved["validated_at"]) == ((13, 10) if moment == "update" else (10, 0))
    assert not RunDir(tmp_path / "stopped").is_finished()
    assert_same_end(train(config, run_dir=tmp_path / "stopped", resume=True), expected)


def test_a_rank_whose_torchrun_was_killed_saves_and_leaves(
    toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    parent = os.getppid()
    parents = iter([parent] * 4 + [1] * 10)  # the one who inherits orphans
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    monkeypatch.setattr(loop, "join_group", lambda: nullcontext(Group(launcher=parent)))
    with pytest.raises(SystemExit, match=r"^143$"):
        train(toy_config("train.checkpoint_every_updates=1000"), run_dir=tmp_path / "run")
    assert f"torchrun (process {parent}) is gone: saving, then exiting" in caplog.text
    assert checkpoint.load_state(tmp_path / "run" / "last").values["state"]["update"] == 4


def test_a_finished_run_says_so_and_goes_on_when_its_limit_is_raised(
    toy_config: ConfigMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run = train(toy_config(), run_dir=tmp_path / "run")
    before = events(run)
    train(toy_config(), run_dir=run.path, resume=True)
    assert "finished (train.max_epochs=2 reached); to continue, raise that limit" in caplog.text
    assert events(run) == before
    train(toy_config("train.max_epochs=3"), run_dir=run.path, resume=True)
    assert events(run)[: len(before)] == before
    assert events(run, "end")[-1]["update"] == 30
    assert run.config().train.max_epochs == 3


def break_losses(patch: pytest.MonkeyPatch, is_bad: Callable[[int], bool]) -> None:
    """Make the loss of a micro-batch not finite where `is_bad(number of the training micro-batch)`."""
    calls = iter(range(10**6))

    def broken(model: Any, batch: Any, **options: Any) -> Any:
        loss = batch_loss(model, batch, **options)
        return loss._replace(loss_sum=loss.loss_sum * math.nan) if is_bad(next(calls)) else loss

    patch.setattr(update, "batch_loss", broken)


def test_a_bad_update_is_skipped_and_recorded(
    toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_losses(monkeypatch, lambda number: number in (4, 5, 12))
    run = train(toy_config("train.max_bad_updates=3"), run_dir=tmp_path / "run")
    bad = events(run, "bad_update")
    assert [(line["update"], line["in_row"], line["epoch"]) for line in bad] == [(4, 1, 0), (4, 2, 0), (10, 1, 1)]
    assert all(line["loss"] is None and len(line["indices"]) == 16 for line in bad)
    assert events(run, "end")[0]["update"] == 17
    assert events(run, "train")[-1]["num_bad"] == 3
    assert all(torch.isfinite(tensor).all() for tensor in run.load_best().tensors.values())


def test_bad_updates_in_a_row_end_training_with_the_last_good_state(toy_config: ConfigMaker, tmp_path: Path) -> None:
    expected = train(toy_config(), run_dir=tmp_path / "whole")
    run = RunDir(tmp_path / "run")
    message = r"3 updates in a row.* training pairs \d+, .* and 8 more\. .*\(update 4\).*learning_rate=0\.0005"
    with pytest.MonkeyPatch.context() as patch:
        break_losses(patch, lambda number: number >= 5)
        with pytest.raises(UserError, match=message):
            train(toy_config("train.max_bad_updates=3"), run_dir=run.path)
    state = checkpoint.load_state(run.last_dir).values["state"]
    assert (state["update"], state["num_bad"]) == (4, 0)
    assert "3 updates in a row" in (run.path / "train.log").read_text(encoding="utf-8")
    assert_same_end(train(toy_config(), run_dir=run.path, resume=True), expected)


@pytest.mark.parametrize(
    "settings",
    [
        ("train.optimizer.eps=1e-300",),  # 0 / 0 where there has been no gradient
        ("train.optimizer.eps=1e-300", "train.optimizer.average_decay=0.9"),
    ],
)
def test_weights_that_are_not_finite_end_training_with_the_last_good_state(
    toy_config: ConfigMaker, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    run = RunDir(tmp_path / "run")
    often = ("train.checkpoint_every_updates=1", "train.validation.every_updates=1")
    with pytest.raises(UserError, match=r"run/last .*learning_rate="):
        train(toy_config(*settings, *often), run_dir=run.path)
    saved = checkpoint.load_state(run.last_dir)
    assert all(tensor.isfinite().all() for tensor in saved.tensors.values())
    assert events(run, "bad_update")[-1]["update"] == saved.values["state"]["update"]
    config = toy_config(*settings, "train.optimizer.eps=1e-8", *often, "train.max_updates=3")
    assert train(config, run_dir=run.path, resume=True).is_finished()
    assert all(tensor.isfinite().all() for tensor in run.load_best().tensors.values())


def test_patience_ends_training(toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = toy_config(
        *("train.max_epochs=null", "train.validation={every_updates: 2, patience: 3, metric: perplexity}"),
        "train.optimizer.learning_rate=3.0",  # gets worse and worse
    )
    run = train(config, run_dir=tmp_path / "run")
    end = events(run, "end")[0]
    assert end["reason"] == "train.validation.patience=3 reached: perplexity has not improved in 3 validations"
    validations = events(run, "validation")
    assert end["update"] == end["best_update"] + 3 * 2 == validations[-1]["update"]
    assert [line["is_best"] for line in validations[-4:]] == [True, False, False, False]
    assert run.load_best().values["update"] == end["best_update"]


def test_an_error_rate_chooses_the_best_model(toy_config: ConfigMaker, tmp_path: Path) -> None:
    config = toy_config("train.validation={every_updates: 4, metric: cer}", "train.optimizer.learning_rate=0.05")
    run = train(config, run_dir=tmp_path / "run")
    validations, end = events(run, "validation"), events(run, "end")[0]
    rates = [line["cer"] for line in validations]
    assert len({*rates}) > 1
    assert end["best_score"] == min(rates)
    best = next(line for line in validations if line["update"] == end["best_update"])
    assert best["cer"] == min(rates)
    assert run.load_best().values["cer"] == min(rates)
    assert ", CER " in (run.path / "train.log").read_text(encoding="utf-8")


def test_minutes_count_over_sessions(toy_config: ConfigMaker, tmp_path: Path) -> None:
    run = train(toy_config("train.max_minutes=0.000001"), run_dir=tmp_path / "run")
    assert events(run, "end")[0]["reason"] == "train.max_minutes=1e-06 reached"
    assert events(run, "end")[0]["update"] == 1
    tensors, values, _ = checkpoint.load_state(run.last_dir)
    values["state"]["elapsed_s"] = 3600.0
    checkpoint.save_state(run.last_dir, tensors, values)
    train(toy_config("train.max_minutes=61"), run_dir=run.path, resume=True)
    last = json.loads(run.metrics_path.read_text().splitlines()[-1])
    assert last["update"] == 20
    assert 3600 < last["elapsed_s"] < 3660


@pytest.mark.parametrize(
    ("schedule", "limit", "is_told"),
    [
        ("trapezoid", "train.max_minutes=0.000001", True),
        ("cosine", "train.max_updates=3", False),
    ],
)
def test_training_that_ends_before_its_rate_falls_says_so(
    toy_config: ConfigMaker, tmp_path: Path, schedule: str, limit: str, is_told: bool
) -> None:
    run = train(toy_config(f"train.schedule.name={schedule}", limit), run_dir=tmp_path / "run")
    message = f"before the learning rate had fallen: train.schedule.name={schedule} was planned for 20 updates"
    assert (message in (run.path / "train.log").read_text(encoding="utf-8")) == is_told


def test_lower_cased_models_are_scored_lower_cased(toy_config: ConfigMaker, tmp_path: Path) -> None:
    run = train(toy_config("data.tokenizer.lowercase=true", "train.max_updates=1"), run_dir=tmp_path / "run")
    assert "case:lc" in events(run, "validation")[0]["signature"]


def test_plateau_lowers_the_learning_rate(toy_config: ConfigMaker, tmp_path: Path) -> None:
    config = toy_config(
        *("train.schedule={name: plateau, factor: 0.1, patience: 0}", "train.optimizer.learning_rate=3.0"),
        *("train.validation={every_updates: 2, metric: perplexity}", "train.log_every_updates=1"),
    )
    run = train(config, run_dir=tmp_path / "run")
    worse = sum(not line["is_best"] for line in events(run, "validation")[:-1])
    assert worse > 0
    assert events(run, "train")[-1]["learning_rate"] == pytest.approx(3.0 * 0.1**worse)


def test_a_resume_on_other_text_is_refused(toy_config: ConfigMaker, toy_corpus: Path, tmp_path: Path) -> None:
    mine = tmp_path / "corpus"
    shutil.copytree(toy_corpus, mine)
    own = [f"data.{split}={mine / split}" for split in ("train", "valid")]
    run = train(toy_config(*own, "train.max_updates=2"), run_dir=tmp_path / "run")
    with (mine / "train.de").open("a") as source, (mine / "train.en").open("a") as target:
        source.write("Hund\n")
        target.write("dog\n")
    with pytest.raises(UserError, match=r"not the corpus that .* was started with"):
        train(toy_config(*own, "train.max_updates=4"), run_dir=run.path, resume=True)


def test_a_resume_on_the_same_text_from_other_files(
    toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = "data.limit={train: 40, valid: 5, test: 5}"
    captions = (*NO_TEXT, "data.corpus=captions", sizes, f"data.data_dir={tmp_path / 'data'}")
    run = train(toy_config(*captions, "train.max_updates=1"), run_dir=tmp_path / "run")
    monkeypatch.setattr("seq2seq_attn.data.sources.sha256_of", lambda path: "compressed by another program")
    train(toy_config(*captions, "train.max_updates=2"), run_dir=run.path, resume=True)
    assert len({path.name for path in (tmp_path / "data" / "prepared").glob("captions-*")}) == 2
    assert events(run, "end")[-1]["update"] == 2


@pytest.mark.parametrize("is_finished", [False, True])
def test_a_resume_without_the_best_model_is_refused_before_data_is_prepared(
    toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_finished: bool
) -> None:
    run = train(toy_config("train.max_updates=2"), run_dir=tmp_path / "run")
    run.model_path.unlink()
    monkeypatch.setattr("seq2seq_attn.train.loop.prepare_corpus", lambda *_, **__: pytest.fail("prepared"))
    with pytest.raises(UserError, match=r"run/model\.safetensors"):
        train(toy_config(f"train.max_updates={2 if is_finished else 4}"), run_dir=run.path, resume=True)


def test_overwrite_starts_anew(toy_config: ConfigMaker, tmp_path: Path) -> None:
    config = toy_config("train.max_updates=2")
    run = train(config, run_dir=tmp_path / "run")
    with pytest.raises(UsageError, match="already holds a run"):
        train(config, run_dir=run.path)
    again = train(toy_config("train.max_updates=2", "seed=5"), run_dir=run.path, overwrite=True)
    assert again.config().seed == 5
    assert len(events(again, "end")) == 1


def test_a_training_that_diverges_says_so(
    toy_config: ConfigMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    train(toy_config("train.optimizer.learning_rate=100", "train.max_epochs=1"), run_dir=tmp_path / "run")
    assert "is worse than guessing among 22 target types: training diverges; lower" in caplog.text
    assert "train.optimizer.learning_rate=100" in caplog.text
    assert "best so far" not in caplog.text
    assert "the best model is worse than guessing" in caplog.messages[-1]
    caplog.clear()
    train(toy_config("train.max_epochs=1"), run_dir=tmp_path / "healthy")
    assert "best so far" in caplog.text
    assert "guessing" not in caplog.text


def test_hypotheses_that_the_length_limit_cut_are_counted(
    toy_config: ConfigMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    tight = ("search.max_length_ratio=0.1", "search.max_length_extra=1", "train.max_updates=2")
    run = train(toy_config(*tight), run_dir=tmp_path / "run")
    (num_cut,) = [line["num_cut"] for line in events(run, "validation")]
    assert 20 < num_cut <= 24
    assert events(run, "end")[0]["best_num_cut"] == num_cut
    assert f"{num_cut} of 24 hypotheses cut at the length limit" in caplog.text
    assert caplog.messages[-1].startswith(f"the length limit cut {num_cut} hypotheses of that validation;")


def test_pairs_that_are_dropped_or_in_training_too_are_told(
    toy_config: ConfigMaker, toy_corpus: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    train(toy_config("train.max_updates=1"), run_dir=tmp_path / "all")
    assert "data.max_length" not in caplog.text
    caplog.clear()
    texts = [f"data.valid={toy_corpus / 'train'}", f"data.test={{same: {toy_corpus / 'train'}}}"]
    config = toy_config(*texts, "data.max_length=10", "train.validation.num_pairs=2", "train.max_updates=1")
    dropped = prepare_corpus(config).audit["train"]["dropped"]["over_long"]
    train(config, run_dir=tmp_path / "some")
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    told = [message for message in warnings if "pairs" in message]
    same = "160 of 160 pairs are in the training text too: their scores say little about new text"
    assert any(f"{dropped} " in message and "data.max_length" in message for message in told)
    assert {f"valid: {same}", f"same: {same}"} <= set(told)


def test_what_has_no_fast_path_is_logged(
    toy_config: ConfigMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    train(toy_config("train.max_updates=1"), run_dir=tmp_path / "plain")
    assert "step by step" not in caplog.text
    assert "vocabularies: 18 source and 18 target types, and 4 special tokens" in caplog.text
    sampled = ("train.teacher_forcing.start=0.5", "train.max_updates=1")
    train(toy_config(*sampled), run_dir=tmp_path / "sampled")
    assert "training: step by step, as there is no fast path for this combination" in caplog.text
    assert "translation: step by step" not in caplog.text
    train(toy_config("model.decoder.cell=lstm", "train.max_updates=1"), run_dir=tmp_path / "lstm")
    assert "translation: step by step, as there is no fast path for this combination" in caplog.text


@pytest.mark.parametrize("name", ["batch_loss", "Translator"])
def test_out_of_memory_in_a_validation_says_what_to_lower(
    toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(validate, name, fail)
    message = r"out of memory with search\.batch_size=8 \(in a validation\); try --set search\.batch_size=4"
    with pytest.raises(UserError, match=message):
        train(toy_config("search.batch_size=8", "train.max_updates=1"), run_dir=tmp_path / "run")


def test_the_averaged_weights_are_validated_and_saved(toy_config: ConfigMaker, tmp_path: Path) -> None:
    config = toy_config("train.optimizer.average_decay=0.9", "train.max_updates=4")
    run = train(config, run_dir=tmp_path / "run")
    tensors = checkpoint.load_state(run.last_dir).tensors
    best, name = run.load_best().tensors, "output.projection.bias"
    assert torch.equal(best[name], tensors[f"average/{name}"])
    assert not torch.equal(best[name], tensors[f"model/{name}"])
