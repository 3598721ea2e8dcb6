"""Training runs: what they leave, log and save; kills, signals and resumes; updates that are not
finite."""

import json
import math
import os
import re
import shutil
import signal
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from itertools import count
from random import Random
from typing import Any

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.config import Config, OptimizerConfig
from seq2seq_attn.data import sources
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.weights import read_tensors, write_tensors
from seq2seq_attn.run import Run
from seq2seq_attn.train import loop, update
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.distributed import Group
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.update import Updater, UpdateResult
from seq2seq_attn.train.validate import Validation, Validator

TIMES = {"elapsed_s", "seconds", "tokens_per_s"}


def events(run: Run, kind: str | None = None) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl, without what a clock says."""
    lines = [json.loads(line) for line in run.metrics_path.read_text(encoding="utf-8").splitlines()]
    return [
        {k: v for k, v in line.items() if k not in TIMES}
        for line in lines
        if kind in (None, line["event"])
    ]


def logged(run: Run) -> str:
    return (run.path / "train.log").read_text(encoding="utf-8")


def assert_same_tensors(run: Run, expected: Run) -> None:
    """Bit for bit: weights, moments, averages, random generators."""
    tensors, expected_tensors = (read_tensors(r.state_path).tensors for r in (run, expected))
    assert tensors.keys() == expected_tensors.keys()
    assert [
        name for name in tensors if not torch.equal(tensors[name], expected_tensors[name])
    ] == []


def assert_same_end(run: Run, expected: Run) -> None:
    """Bit for bit: tensors, the best model, counters, history."""
    assert_same_tensors(run, expected)
    assert run.model_path.read_bytes() == expected.model_path.read_bytes()
    states = [read_tensors(r.state_path).values["state"] for r in (run, expected)]
    for state in states:  # what a clock says
        state.update(elapsed_s=0.0, metrics_position=0)
        state["window"]["seconds"] = 0.0
    assert states[0] == states[1]
    assert events(run) == events(expected)


class Killed(BaseException):
    """Stands for a SIGKILL: nothing may be done about it."""


def train_and_die(at_update: int, config: Config, **options: Any) -> None:
    """Train, and die before an update is noted: whatever was not on disk is lost."""
    apply_update = Updater.apply_update

    def mortal(
        self: Updater, batches: UpdateBatches, *, update: int, **settings: Any
    ) -> UpdateResult:
        result = apply_update(self, batches, update=update, **settings)
        if update == at_update:
            raise Killed
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "apply_update", mortal)
        with pytest.raises(Killed):
            train(config, **options)


@pytest.fixture(scope="session")
def whole(toy_config, tmp_path_factory) -> Run:
    """A run of two epochs, which tests do not change."""
    return train(toy_config(), run_dir=tmp_path_factory.mktemp("whole") / "run")


def test_a_training_leaves_a_run_that_translates(toy_config, whole):
    assert whole.is_finished()
    files = {
        "config.yaml",
        "environment.json",
        "train.log",
        "metrics.jsonl",
        "model.safetensors",
        "last",
    }
    assert files <= {path.name for path in whole.path.iterdir()}
    assert len(list(whole.path.glob("events.out.tfevents.*"))) == 1
    assert whole.config == toy_config("search.max_length_ratio=2")
    assert isinstance(load(whole.path).translate(["Hund Katze"])[0].text, str)
    assert "160 training pairs, 24" in logged(whole)
    assert "18 source and 18" in logged(whole)
    assert "hypothesis" in logged(whole)


def test_metrics_have_a_line_per_event(whole):
    assert [(line["event"], line["update"]) for line in events(whole)] == [
        *[("train", 3), ("train", 6), ("train", 9), ("validation", 10)],
        *[("train", 12), ("train", 15), ("train", 18), ("validation", 20), ("end", 20)],
    ]
    first = json.loads(whole.metrics_path.read_text().splitlines()[0])
    assert first["loss"] == pytest.approx(
        math.log(23), rel=0.1
    )  # before learning: all characters alike
    assert first["nll"] == pytest.approx(first["loss"])  # nothing is smoothed
    assert 0.1 < first["gradient_norm"] < 1.0
    assert (first["learning_rate"], first["teacher_forcing_ratio"]) == (1e-3, 1.0)
    assert first["tokens_per_s"] > 0
    validation = events(whole, "validation")[-1]
    assert validation["perplexity"] > 1
    assert 0 <= validation["bleu"] <= 100
    assert validation["signature"].startswith("nrefs:1|case:mixed")
    assert validation["num_pairs"] == 24
    assert [set(sample) for sample in validation["samples"]] == [
        {"source", "reference", "hypothesis"}
    ] * 3
    assert len({sample["source"] for sample in validation["samples"]}) > 1
    end = events(whole, "end")[0]
    assert end["reason"] == "train.max_epochs=2 reached"
    assert end["best_update"] in (10, 20)


def test_the_same_seed_gives_the_same_run_and_another_one_does_not(toy_config, tmp_path, whole):
    assert_same_end(train(toy_config(), run_dir=tmp_path / "b"), whole)
    other = train(toy_config("seed=2"), run_dir=tmp_path / "c")
    assert events(other, "train") != events(whole, "train")


def test_a_run_says_how_long_translations_may_be(toy_config, tmp_path, caplog):
    """The ratio comes from the training pairs unless it was chosen; a resume keeps it without a
    warning."""
    (tmp_path / "train.de").write_text("ab\n" * 16)
    (tmp_path / "train.en").write_text("cdefghijklmnopq\n" * 16)
    settings = [
        f"data.train={tmp_path / 'train'}",
        f"data.data_dir={tmp_path}",
        "search.max_length_extra=0",
    ]
    run = train(toy_config(*settings), run_dir=tmp_path / "run")
    assert run.config.search.max_length_ratio == 10.0  # 15 tokens and EOS of 2, and a quarter
    fixed = train(toy_config(*settings, "search.max_length_ratio=3"), run_dir=tmp_path / "3")
    assert fixed.config.search.max_length_ratio == 3.0
    with pytest.raises(UsageError, match=r"search\.max_length_ratio=10: .*3"):
        train(toy_config(*settings, "train.max_epochs=9"), run_dir=fixed.path, resume=True)
    train(toy_config(*settings, "train.max_epochs=3"), run_dir=run.path, resume=True)
    assert any("train.max_epochs: 3" in message for message in caplog.messages)
    assert not any("search" in message and "session" in message for message in caplog.messages)


ALL = (
    "train.optimizer.average_decay=0.9",
    "train.teacher_forcing={schedule: linear, start: 1.0, end: 0.2, num_updates: 15}",
    "train.schedule={name: cosine, warmup_updates: 3}",
    "train.label_smoothing=0.1",
    *("train.batch.accumulate=2", "train.batch.size=8"),
    *("train.validation.every_updates=7", "train.checkpoint_every_updates=3"),
)


@pytest.mark.parametrize(
    "precision", ["fp32", "bf16", pytest.param("fp16", marks=pytest.mark.slow)]
)
def test_killed_and_resumed_equals_never_killed(toy_config, tmp_path, precision):
    config = toy_config(*ALL, f"train.precision={precision}")
    expected = train(config, run_dir=tmp_path / "whole")
    run_dir = tmp_path / "killed"
    # in the first update, within and at the end of a period, in the last
    for at_update in (0, 5, 6, 13, 19) if precision == "fp32" else (5, 19):
        train_and_die(at_update, config, run_dir=run_dir, resume=True)
    assert_same_end(train(config, run_dir=run_dir, resume=True), expected)


@pytest.mark.parametrize(
    ("moment", "number", "error", "message"),
    [
        ("update", signal.SIGINT, KeyboardInterrupt, "^$"),
        ("validation", signal.SIGTERM, SystemExit, "^143$"),
    ],
)
def test_a_signal_saves_and_leaves(toy_config, tmp_path, whole, moment, number, error, message):
    apply_update, validate = Updater.apply_update, Validator.validate

    def signalled_step(
        self: Updater, batches: UpdateBatches, *, update: int, **settings: Any
    ) -> UpdateResult:
        if moment == "update" and update == 12:
            os.kill(os.getpid(), number)
        return apply_update(self, batches, update=update, **settings)

    def signalled_validation(self: Validator, model: Seq2Seq) -> Validation:
        if moment == "validation":
            os.kill(os.getpid(), number)
        return validate(self, model)

    config, run = toy_config("train.checkpoint_every_updates=1000"), Run(tmp_path / "stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Updater, "apply_update", signalled_step)
        patch.setattr(Validator, "validate", signalled_validation)
        with pytest.raises(error, match=message):
            train(config, run_dir=run.path)
    saved = read_tensors(run.state_path).values["state"]
    assert (saved["update"], saved["validated_at"]) == ((13, 10) if moment == "update" else (10, 0))
    assert not run.is_finished()
    assert_same_end(train(config, run_dir=run.path, resume=True), whole)


def test_a_rank_whose_torchrun_was_killed_saves_and_leaves(
    toy_config, tmp_path, monkeypatch, caplog
):
    launcher = os.getppid()
    monkeypatch.setattr(loop, "join_group", lambda: nullcontext(Group(launcher=launcher)))
    apply_update = Updater.apply_update

    def lose_launcher(
        self: Updater, batches: UpdateBatches, *, update: int, **settings: Any
    ) -> UpdateResult:
        if update == 3:
            monkeypatch.setattr(os, "getppid", lambda: 1)  # the process that inherits orphans
        return apply_update(self, batches, update=update, **settings)

    monkeypatch.setattr(Updater, "apply_update", lose_launcher)
    with pytest.raises(SystemExit, match=r"^143$"):
        train(toy_config("train.checkpoint_every_updates=1000"), run_dir=tmp_path / "run")
    assert f"torchrun (process {launcher}) is gone" in caplog.text
    assert read_tensors(Run(tmp_path / "run").state_path).values["state"]["update"] == 4


def test_ranks_share_their_first_weights_and_nothing_that_they_draw_later(
    toy_config, tmp_path, monkeypatch
):
    weights, draws = [], []

    def begin(model: torch.nn.Module, *args: Any, **options: Any) -> Updater:
        weights.append(torch.cat([parameter.flatten() for parameter in model.parameters()]))
        draws.append(torch.rand(3).tolist())
        raise Killed

    class Rank(Group):
        """One of four, which need not wait for each other here."""

        def in_turn(self) -> Any:
            return nullcontext()

    monkeypatch.setattr(loop, "Updater", begin)
    for rank in range(3):
        monkeypatch.setattr(loop, "join_group", partial(nullcontext, Rank(rank, 4)))
        with pytest.raises(Killed):
            train(toy_config(), run_dir=tmp_path / "run")
    assert all(torch.equal(one, weights[0]) for one in weights)
    assert len({tuple(drawn) for drawn in draws}) == 3


def break_losses(patch: pytest.MonkeyPatch, is_bad: Callable[[int], bool]) -> None:
    """Make the loss of a micro-batch not finite where `is_bad(number of the training
    micro-batch)`."""
    calls = iter(range(10**6))

    def broken(model: Any, batch: Any, **options: Any) -> Any:
        loss = batch_loss(model, batch, **options)
        return loss._replace(loss_sum=loss.loss_sum * math.nan) if is_bad(next(calls)) else loss

    patch.setattr(update, "batch_loss", broken)


def test_a_bad_update_is_skipped_and_recorded(toy_config, tmp_path, monkeypatch):
    break_losses(monkeypatch, lambda number: number in (4, 5, 12))
    run = train(toy_config("train.max_bad_updates=3"), run_dir=tmp_path / "run")
    bad = events(run, "bad_update")
    assert [(line["update"], line["in_row"], line["epoch"]) for line in bad] == [
        (4, 1, 0),
        (4, 2, 0),
        (10, 1, 1),
    ]
    assert all(line["loss"] is None and len(line["indices"]) == 16 for line in bad)
    assert events(run, "end")[0]["update"] == 17
    assert events(run, "train")[-1]["num_bad"] == 3
    assert all(torch.isfinite(tensor).all() for tensor in run.load_best().tensors.values())


def test_bad_updates_in_a_row_end_training_with_the_last_good_state(toy_config, tmp_path, whole):
    run = Run(tmp_path / "run")
    message = r"3 updates in a row.* training pairs \d+, .* and 8 more\. .*\(update 4\).*learning_rate=0\.0005"
    with pytest.MonkeyPatch.context() as patch:
        break_losses(patch, lambda number: number >= 5)
        with pytest.raises(UserError, match=message):
            train(toy_config("train.max_bad_updates=3"), run_dir=run.path)
    state = read_tensors(run.state_path).values["state"]
    assert (state["update"], state["num_bad"]) == (4, 0)
    assert "3 updates in a row" in logged(run)
    assert_same_end(train(toy_config(), run_dir=run.path, resume=True), whole)


def break_weights(patch: pytest.MonkeyPatch, draw: Random) -> None:
    """Make a weight infinite or NaN: in an update, as an overflow does, or after it."""
    at_update, value = draw.randrange(19), draw.choice([math.nan, math.inf, -math.inf])

    def break_one(optimizer: torch.optim.Optimizer) -> None:
        parameter = draw.choice(draw.choice(optimizer.param_groups)["params"]).data.view(-1)
        parameter[draw.randrange(len(parameter))] = value

    def build(model: torch.nn.Module, config: OptimizerConfig) -> torch.optim.Optimizer:
        optimizer, calls = build_optimizer(model, config), count()
        optimizer.register_step_post_hook(
            lambda *_: break_one(optimizer) if next(calls) == at_update else None
        )
        return optimizer

    def step_then_break(
        self: Updater, batches: UpdateBatches, *, update: int, **settings: Any
    ) -> UpdateResult:
        result = apply_update(self, batches, update=update, **settings)
        if update == at_update:
            break_one(self.optimizer)
        return result

    build_optimizer, apply_update = update.build_optimizer, Updater.apply_update
    if draw.random() < 0.5:
        patch.setattr(update, "build_optimizer", build)
    else:
        patch.setattr(Updater, "apply_update", step_then_break)


@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(2, 100), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_weights_that_are_not_finite_end_training_with_the_last_good_state(
    toy_config, tmp_path, whole, seeds
):
    for seed in seeds:
        draw, run = Random(seed), Run(tmp_path / f"run{seed}")
        average = draw.choice(["0", "0.9"])
        config = toy_config(
            f"train.optimizer.average_decay={average}",
            f"train.checkpoint_every_updates={draw.randint(1, 7)}",
        )
        with pytest.MonkeyPatch.context() as patch:
            break_weights(patch, draw)
            with pytest.raises(UserError, match=rf"run{seed}/.*learning.rate"):
                train(config, run_dir=run.path)
        for saved in [
            read_tensors(run.state_path),
            *([run.load_best()] if run.model_path.exists() else []),
        ]:
            assert all(tensor.isfinite().all() for tensor in saved.tensors.values()), seed
        train(config, run_dir=run.path, resume=True)
        assert all(tensor.isfinite().all() for tensor in run.load_best().tensors.values()), seed
        if average == "0":
            assert_same_end(run, whole)
        shutil.rmtree(run.path)


def test_patience_ends_training(toy_config, tmp_path):
    settings = (
        "train.validation={every_updates: 2, patience: 3, metric: perplexity}",
        "train.max_epochs=null",
    )
    config = toy_config(*settings, "train.optimizer.learning_rate=3.0")  # gets worse and worse
    run = train(config, run_dir=tmp_path / "run")
    end, validations = events(run, "end")[0], events(run, "validation")
    assert end["reason"].startswith("train.validation.patience=3 reached")
    assert end["update"] == end["best_update"] + 3 * 2 == validations[-1]["update"]
    assert [line["is_best"] for line in validations[-4:]] == [True, False, False, False]
    assert run.load_best().values["update"] == end["best_update"]


def test_minutes_count_over_sessions(toy_config, tmp_path):
    trapezoid = "train.schedule.name=trapezoid"
    run = train(toy_config(trapezoid, "train.max_minutes=0.000001"), run_dir=tmp_path / "run")
    assert trapezoid in logged(run)  # which had not fallen yet
    assert events(run, "end")[0]["reason"] == "train.max_minutes=1e-06 reached"
    assert events(run, "end")[0]["update"] == 1
    tensors, values, _ = read_tensors(run.state_path)
    values["state"]["elapsed_s"] = 3600.0
    write_tensors(run.state_path, tensors, values)
    train(toy_config(trapezoid, "train.max_minutes=61"), run_dir=run.path, resume=True)
    assert re.search(r"update 3, .* about (0\.9|1\.0) minutes left", logged(run))
    last = json.loads(run.metrics_path.read_text().splitlines()[-1])
    assert last["update"] == 20
    assert 3600 < last["elapsed_s"] < 3660


def test_rates_and_ratios_follow_their_schedules(toy_config, tmp_path):
    config = toy_config(
        *(
            "train.schedule={name: plateau, factor: 0.1, patience: 0}",
            "train.optimizer.learning_rate=3.0",
        ),
        *(
            "train.validation={every_updates: 2, metric: perplexity}",
            "train.log_every_updates=1",
            "train.max_epochs=1",
        ),
        "train.teacher_forcing={schedule: linear, start: 1.0, end: 0.2, num_updates: 4}",
    )
    run = train(config, run_dir=tmp_path / "run")
    worse = sum(not line["is_best"] for line in events(run, "validation")[:-1])
    assert worse > 0
    assert events(run, "train")[-1]["learning_rate"] == pytest.approx(3.0 * 0.1**worse)
    ratios = [line["teacher_forcing_ratio"] for line in events(run, "train")]
    assert ratios[:6] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.2])


def test_a_resume_on_other_text_is_refused(toy_config, toy_corpus, tmp_path):
    mine = shutil.copytree(toy_corpus, tmp_path / "corpus")
    own = [f"data.{split}={mine / split}" for split in ("train", "valid")]
    run = train(toy_config(*own, "train.max_updates=2"), run_dir=tmp_path / "run")
    for language, word in (("de", "Hund"), ("en", "dog")):
        with (mine / f"train.{language}").open("a") as text:
            text.write(f"{word}\n")
    with pytest.raises(UserError, match=f"{run.path}.*content hash"):
        train(toy_config(*own, "train.max_updates=4"), run_dir=run.path, resume=True)


def test_a_resume_on_the_same_text_from_other_files(toy_config, tmp_path, monkeypatch):
    captions = ("data.train=null", "data.valid=null", "data.test={}", "data.corpus=captions")
    captions = (
        *captions,
        "data.limit={train: 40, valid: 5, test: 5}",
        f"data.data_dir={tmp_path / 'data'}",
    )
    run = train(toy_config(*captions, "train.max_updates=1"), run_dir=tmp_path / "run")
    monkeypatch.setattr(sources, "sha256_of", lambda path: "compressed by another program")
    train(toy_config(*captions, "train.max_updates=2"), run_dir=run.path, resume=True)
    assert len({path.name for path in (tmp_path / "data" / "prepared").glob("captions-*")}) == 2
    assert events(run, "end")[-1]["update"] == 2


@pytest.mark.parametrize("max_epochs", [2, 4])
def test_a_resume_without_the_best_model_is_refused_before_data_is_prepared(
    toy_config, tmp_path, whole, monkeypatch, max_epochs
):
    run = Run(shutil.copytree(whole.path, tmp_path / "run"))
    run.model_path.unlink()
    monkeypatch.setattr(loop, "prepare_corpus", lambda *_, **__: pytest.fail("prepared"))
    with pytest.raises(UserError, match=r"run/model\.safetensors"):
        train(toy_config(f"train.max_epochs={max_epochs}"), run_dir=run.path, resume=True)


def test_a_resume_with_another_precision_threads_or_processes_says_so(
    toy_config, tmp_path, whole, caplog
):
    run = Run(shutil.copytree(whole.path, tmp_path / "run"))
    tensors, values, _ = read_tensors(run.state_path)
    for changes, warnings in [
        ({}, []),
        ({"precision": "bf16"}, ["precision: fp32 in this session, bf16 before"]),
        ({"num_threads": 7}, ["num_threads: 1 in this session, 7 before"]),
        ({"num_processes": 4}, ["num_processes: 1 in this session, 4 before"]),
    ]:
        caplog.clear()
        write_tensors(run.state_path, tensors, {**values, **changes})
        train(toy_config(), run_dir=run.path, resume=True)
        assert [
            message.rpartition(":")[0] for message in caplog.messages if "before:" in message
        ] == warnings


def test_the_averaged_weights_are_validated_and_saved(toy_config, tmp_path):
    config = toy_config("train.optimizer.average_decay=0.9", "train.max_updates=4")
    run = train(config, run_dir=tmp_path / "run")
    tensors = read_tensors(run.state_path).tensors
    best, name = run.load_best().tensors, "output.projection.bias"
    assert torch.equal(best[name], tensors[f"average/{name}"])
    assert not torch.equal(best[name], tensors[f"model/{name}"])


def test_the_log_names_the_setting_to_change(toy_config, tmp_path):
    """Of translations that their limit cuts, and of a model that only guesses."""
    limits = (
        "search.max_length_ratio=0.1",
        "search.max_length_extra=1",
        "data.tokenizer.lowercase=true",
    )
    run = train(toy_config("train.max_epochs=1", *limits), run_dir=tmp_path / "cut")
    (validation,), (end,) = events(run, "validation"), events(run, "end")
    assert "case:lc" in validation["signature"]
    assert end["best_num_cut"] == validation["num_cut"] > 20
    assert "--max-length-ratio" in logged(run)
    guessing = toy_config("train.max_epochs=1", "train.optimizer.learning_rate=100")
    assert "learning_rate=100" in logged(train(guessing, run_dir=tmp_path / "guessing"))


def test_pairs_that_are_dropped_or_in_training_too_are_warned_about(
    toy_config, toy_corpus, tmp_path, caplog
):
    texts = [f"data.valid={toy_corpus / 'train'}", f"data.test={{same: {toy_corpus / 'train'}}}"]
    config = toy_config(
        *texts, "data.max_length=10", "train.validation.num_pairs=2", "train.max_updates=1"
    )
    num_dropped = prepare_corpus(config).audit["train"]["dropped"]["over_long"]
    train(config, run_dir=tmp_path / "some")
    assert any(
        f"{num_dropped} " in message and "data.max_length" in message for message in caplog.messages
    )
    for split in ("valid", "same"):
        assert any(message.startswith(f"{split}: 160 of 160 pairs") for message in caplog.messages)
