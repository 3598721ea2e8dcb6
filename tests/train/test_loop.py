"""Training runs: what they leave, log and save; kills, signals and resumes; updates that are not
finite."""

import json
import math
import os
import re
import shutil
import signal
from contextlib import nullcontext
from functools import partial
from random import Random

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.data import sources
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.weights import read_tensors, write_tensors
from seq2seq_attn.run import Run
from seq2seq_attn.train import loop, update
from seq2seq_attn.train.distributed import Group
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.validate import Validator
from tests.train.runs import (
    Killed,
    assert_finite,
    assert_same_end,
    at_update,
    events,
    logged,
    saved_state,
    train_and_die,
)


@pytest.fixture(scope="session")
def whole(toy_config, tmp_path_factory):
    """A run of two epochs, which tests do not change."""
    return train(toy_config(), run_dir=tmp_path_factory.mktemp("whole") / "run")


def test_a_training_leaves_a_run_that_translates(toy_config, whole):
    assert whole.is_finished()
    names = "config.yaml environment.json train.log metrics.jsonl model.safetensors last"
    assert set(names.split()) <= {path.name for path in whole.path.iterdir()}
    assert len(list(whole.path.glob("events.out.tfevents.*"))) == 1
    assert whole.config == toy_config("search.max_length_ratio=2")
    assert isinstance(load(whole.path).translate(["Hund Katze"])[0].text, str)
    assert "160 training pairs, 24" in logged(whole)
    assert "18 source and 18" in logged(whole)
    assert "hypothesis" in logged(whole)


def test_metrics_have_a_line_per_event(whole):
    numbers = {}
    for line in events(whole):
        numbers.setdefault(line["event"], []).append(line["update"])
    assert numbers == {"train": [3, 6, 9, 12, 15, 18], "validation": [10, 20], "end": [20]}


def test_the_line_of_an_update_has_its_means_and_settings(whole):
    first = json.loads(whole.metrics_path.read_text().splitlines()[0])
    guess = math.log(23)  # before learning, all characters are equally probable
    assert first["loss"] == pytest.approx(guess, rel=0.1)
    assert first["nll"] == pytest.approx(first["loss"])  # nothing is smoothed
    assert 0.1 < first["gradient_norm"] < 1.0
    assert first["learning_rate"] == 1e-3
    assert first["teacher_forcing_ratio"] == 1.0
    assert first["tokens_per_s"] > 0


def test_the_line_of_a_validation_has_scores_and_samples(whole):
    validation = events(whole, "validation")[-1]
    assert validation["perplexity"] > 1
    assert 0 <= validation["bleu"] <= 100
    assert validation["signature"].startswith("nrefs:1|case:mixed")
    assert validation["num_pairs"] == 24
    samples = validation["samples"]
    assert len({sample["source"] for sample in samples}) == 3
    assert all(sample.keys() == {"source", "reference", "hypothesis"} for sample in samples)


def test_the_same_seed_gives_the_same_run_and_another_one_does_not(train_toy, whole):
    assert_same_end(train_toy(name="b"), whole)
    other = train_toy("seed=2", name="c")
    assert events(other, "train") != events(whole, "train")


def test_a_run_says_how_long_translations_may_be(train_toy, toy_config, tmp_path, caplog):
    """The ratio comes from the training pairs unless it was chosen; a resume keeps it without a
    warning."""
    (tmp_path / "train.de").write_text("ab\n" * 16)
    (tmp_path / "train.en").write_text("cdefghijklmnopq\n" * 16)
    settings = [
        f"data.train={tmp_path / 'train'}",
        f"data.data_dir={tmp_path}",
        "search.max_length_extra=0",
    ]
    run = train_toy(*settings)
    assert run.config.search.max_length_ratio == 10.0  # 15 tokens and EOS of 2, and a quarter
    fixed = train_toy(*settings, "search.max_length_ratio=3", name="3")
    assert fixed.config.search.max_length_ratio == 3.0
    with pytest.raises(UsageError, match=r"search\.max_length_ratio=10: .*3"):
        train(toy_config(*settings, "train.max_epochs=9"), run_dir=fixed.path, resume=True)
    train_toy(*settings, "train.max_epochs=3", resume=True)
    assert any("train.max_epochs: 3" in message for message in caplog.messages)
    assert not any("search" in message and "session" in message for message in caplog.messages)


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


@pytest.mark.parametrize(
    "precision", ["fp32", "bf16", pytest.param("fp16", marks=pytest.mark.slow)]
)
def test_killed_and_resumed_equals_never_killed(toy_config, tmp_path, precision):
    config = toy_config(*ALL, f"train.precision={precision}")
    expected = train(config, run_dir=tmp_path / "whole")
    run_dir = tmp_path / "killed"
    # in the first update, within and at the end of a period, in the last
    for number in (0, 5, 6, 13, 19) if precision == "fp32" else (5, 19):
        train_and_die(number, config, run_dir=run_dir, resume=True)
    assert_same_end(train(config, run_dir=run_dir, resume=True), expected)


def send(number):
    return lambda updater: os.kill(os.getpid(), number)


def test_a_signal_during_an_update_saves_and_leaves(toy_config, tmp_path, whole, monkeypatch):
    config = toy_config("train.checkpoint_every_updates=1000")
    run = Run(tmp_path / "stopped")
    with monkeypatch.context() as patch:
        at_update(patch, 12, send(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            train(config, run_dir=run.path)
    state = saved_state(run)
    assert (state["update"], state["validated_at"]) == (13, 10)
    assert not run.is_finished()
    assert_same_end(train(config, run_dir=run.path, resume=True), whole)


def test_a_signal_during_a_validation_leaves_it_to_the_resume(
    toy_config, tmp_path, whole, monkeypatch
):
    validate = Validator.validate

    def validate_after_signal(self):
        os.kill(os.getpid(), signal.SIGTERM)
        return validate(self)

    config = toy_config("train.checkpoint_every_updates=1000")
    run = Run(tmp_path / "stopped")
    with monkeypatch.context() as patch:
        patch.setattr(Validator, "validate", validate_after_signal)
        with pytest.raises(SystemExit, match=r"^143$"):
            train(config, run_dir=run.path)
    state = saved_state(run)
    assert (state["update"], state["validated_at"]) == (10, 0)
    assert_same_end(train(config, run_dir=run.path, resume=True), whole)


def test_a_rank_whose_torchrun_was_killed_saves_and_leaves(
    train_toy, tmp_path, monkeypatch, caplog
):
    launcher = os.getppid()
    monkeypatch.setattr(loop, "join_group", lambda: nullcontext(Group(launcher=launcher)))

    def lose_launcher(updater):
        monkeypatch.setattr(os, "getppid", lambda: 1)  # the process that inherits orphans

    at_update(monkeypatch, 3, lose_launcher)
    with pytest.raises(SystemExit, match=r"^143$"):
        train_toy("train.checkpoint_every_updates=1000")
    assert f"torchrun (process {launcher}) is gone" in caplog.text
    assert saved_state(Run(tmp_path / "run"))["update"] == 4


def test_ranks_share_their_first_weights_and_nothing_that_they_draw_later(train_toy, monkeypatch):
    weights, draws = [], []

    def begin(model, *args, **options):
        weights.append(torch.cat([parameter.flatten() for parameter in model.parameters()]))
        draws.append(torch.rand(3).tolist())
        raise Killed

    class Rank(Group):
        """One of four, which need not wait for each other here."""

        def in_turn(self):
            return nullcontext()

    monkeypatch.setattr(update, "Updater", begin)
    for rank in range(3):
        monkeypatch.setattr(loop, "join_group", partial(nullcontext, Rank(rank, 4)))
        with pytest.raises(Killed):
            train_toy()
    assert all(torch.equal(one, weights[0]) for one in weights)
    assert len({tuple(drawn) for drawn in draws}) == 3


def break_losses(patch, is_bad):
    """Make the loss of a micro-batch not finite where `is_bad(number of the training
    micro-batch)`."""
    calls = iter(range(10**6))

    def broken(model, batch, **options):
        loss = batch_loss(model, batch, **options)
        return loss._replace(loss_sum=loss.loss_sum * math.nan) if is_bad(next(calls)) else loss

    patch.setattr(update, "batch_loss", broken)


def test_a_bad_update_is_skipped_and_recorded(train_toy, monkeypatch):
    break_losses(monkeypatch, lambda number: number in (4, 5, 12))
    run = train_toy("train.max_bad_updates=3")
    bad = events(run, "bad_update")
    assert [(line["update"], line["in_row"], line["epoch"]) for line in bad] == [
        (4, 1, 0),
        (4, 2, 0),
        (10, 1, 1),
    ]
    assert all(line["loss"] is None and len(line["indices"]) == 16 for line in bad)
    assert events(run, "end")[0]["update"] == 17
    assert events(run, "train")[-1]["num_bad"] == 3
    assert_finite(run.load_best().tensors)


def test_bad_updates_in_a_row_end_training_with_the_last_good_state(train_toy, tmp_path, whole):
    run = Run(tmp_path / "run")
    message = (
        r"3 updates in a row.* training pairs \d+, .* and 6 more\. "
        r".*\(update 4\).*learning_rate=0\.0005"
    )
    with pytest.MonkeyPatch.context() as patch:
        break_losses(patch, lambda number: number >= 5)
        with pytest.raises(UserError, match=message):
            train_toy("train.max_bad_updates=3")
    state = saved_state(run)
    assert (state["update"], state["num_bad"]) == (4, 0)
    assert "3 updates in a row" in logged(run)
    assert_same_end(train_toy(resume=True), whole)


def break_weights(patch, draw):
    """Make a weight infinite or NaN: in an update, as an overflow does, or after it."""
    number = draw.randrange(19)
    value = draw.choice([math.nan, math.inf, -math.inf])

    def break_one(optimizer):
        parameter = draw.choice(draw.choice(optimizer.param_groups)["params"]).data.view(-1)
        parameter[draw.randrange(len(parameter))] = value

    def break_in_step(updater):
        updater.optimizer.register_step_post_hook(lambda *_: break_one(updater.optimizer))

    if draw.random() < 0.5:
        at_update(patch, number, break_in_step)
    else:
        at_update(patch, number, lambda updater: break_one(updater.optimizer), is_after=True)


@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(2, 100), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_weights_that_are_not_finite_end_training_with_the_last_good_state(
    toy_config, tmp_path, whole, seeds
):
    for seed in seeds:
        draw = Random(seed)
        run = Run(tmp_path / f"run{seed}")
        average = draw.choice(["0", "0.9"])
        every_updates = draw.randint(1, 7)
        config = toy_config(
            f"train.optimizer.average_decay={average}",
            f"train.checkpoint_every_updates={every_updates}",
        )
        with pytest.MonkeyPatch.context() as patch:
            break_weights(patch, draw)
            with pytest.raises(UserError, match=rf"run{seed}/.*learning.rate"):
                train(config, run_dir=run.path)
        assert_finite(read_tensors(run.state_path).tensors)
        if run.model_path.exists():
            assert_finite(Run(run.path).load_best().tensors)
        run = train(config, run_dir=run.path, resume=True)
        assert_finite(run.load_best().tensors)
        if average == "0":
            assert_same_end(run, whole)
        shutil.rmtree(run.path)


def test_patience_ends_training(train_toy):
    settings = (
        "train.validation={every_updates: 2, patience: 3, metric: perplexity}",
        "train.max_epochs=null",
    )
    run = train_toy(*settings, "train.optimizer.learning_rate=3.0")  # gets worse and worse
    [end] = events(run, "end")
    validations = events(run, "validation")
    assert end["reason"].startswith("train.validation.patience=3 reached")
    assert end["update"] == end["best_update"] + 3 * 2 == validations[-1]["update"]
    assert [line["is_best"] for line in validations[-4:]] == [True, False, False, False]
    assert run.load_best().values["update"] == end["best_update"]


def test_on_validation_may_stop_a_training_which_a_resume_continues(train_toy):
    seen = []

    def stop_at_the_second(update, scores):
        seen.append((update, scores["bleu"]))
        return len(seen) == 2

    every = "train.validation.every_updates=2"
    run = train_toy(every, on_validation=stop_at_the_second)
    assert [update for update, _ in seen] == [2, 4]
    assert saved_state(run)["update"] == 4
    assert run.score == max(bleu for _, bleu in seen)
    resumed = train_toy(every, resume=True)
    assert saved_state(resumed)["update"] == 20


def test_minutes_count_over_sessions(train_toy):
    trapezoid = "train.schedule.name=trapezoid"
    run = train_toy(trapezoid, "train.max_minutes=0.000001")
    assert trapezoid in logged(run)  # which had not fallen yet
    assert events(run, "end")[0]["reason"] == "train.max_minutes=1e-06 reached"
    assert events(run, "end")[0]["update"] == 1
    tensors, values, _ = read_tensors(run.state_path)
    values["state"]["elapsed_s"] = 3600.0
    write_tensors(run.state_path, tensors, values)
    train_toy(trapezoid, "train.max_minutes=61", resume=True)
    assert re.search(r"update 3, .* about (0\.9|1\.0) minutes left", logged(run))
    last = json.loads(run.metrics_path.read_text().splitlines()[-1])
    assert last["update"] == 20
    assert 3600 < last["elapsed_s"] < 3660


def test_rates_and_ratios_follow_their_schedules(train_toy):
    run = train_toy(
        "train.schedule.warmup_updates=10",
        "train.optimizer.learning_rate=0.1",
        "train.log_every_updates=1",
        "train.max_epochs=1",
        "train.teacher_forcing={schedule: linear, start: 1.0, end: 0.2, num_updates: 4}",
    )
    rates = [line["learning_rate"] for line in events(run, "train")]
    assert rates[:3] == pytest.approx([0.01, 0.02, 0.03])
    ratios = [line["teacher_forcing_ratio"] for line in events(run, "train")]
    assert ratios[:6] == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.2])


def test_a_resume_on_other_text_is_refused(train_toy, toy_corpus, tmp_path):
    mine = shutil.copytree(toy_corpus, tmp_path / "corpus")
    own = [f"data.{split}={mine / split}" for split in ("train", "valid")]
    run = train_toy(*own, "train.max_updates=2")
    for language, word in (("de", "Hund"), ("en", "dog")):
        with (mine / f"train.{language}").open("a") as text:
            text.write(f"{word}\n")
    with pytest.raises(UserError, match=f"{run.path}.*content hash"):
        train_toy(*own, "train.max_updates=4", resume=True)


def test_a_resume_on_the_same_text_from_other_files(train_toy, tmp_path, monkeypatch):
    captions = [
        "data.train=null",
        "data.valid=null",
        "data.test={}",
        "data.corpus=captions",
        "data.limit={train: 40, valid: 5, test: 5}",
        f"data.data_dir={tmp_path / 'data'}",
    ]
    run = train_toy(*captions, "train.max_updates=1")
    monkeypatch.setattr(sources, "sha256_of", lambda path: "compressed by another program")
    train_toy(*captions, "train.max_updates=2", resume=True)
    assert len({path.name for path in (tmp_path / "data" / "prepared").glob("captions-*")}) == 2
    assert events(run, "end")[-1]["update"] == 2


@pytest.mark.parametrize("max_epochs", [2, 4])
def test_a_resume_without_the_best_model_is_refused_before_data_is_prepared(
    train_toy, tmp_path, whole, monkeypatch, max_epochs
):
    run = Run(shutil.copytree(whole.path, tmp_path / "run"))
    run.model_path.unlink()
    monkeypatch.setattr(loop, "prepare_corpus", lambda *_, **__: pytest.fail("prepared"))
    with pytest.raises(UserError, match=r"run/model\.safetensors"):
        train_toy(f"train.max_epochs={max_epochs}", resume=True)


@pytest.mark.parametrize(
    ("changes", "warnings"),
    [
        ({}, []),
        ({"precision": "bf16"}, ["precision: fp32 in this session, bf16 before"]),
        ({"num_threads": 7}, ["num_threads: 1 in this session, 7 before"]),
        ({"num_processes": 4}, ["num_processes: 1 in this session, 4 before"]),
        ({"torch": "2.6.0"}, [f"torch: {torch.__version__} in this session, 2.6.0 before"]),
    ],
)
def test_a_resume_with_another_precision_threads_or_processes_says_so(
    train_toy, tmp_path, whole, caplog, changes, warnings
):
    run = Run(shutil.copytree(whole.path, tmp_path / "run"))
    tensors, values, _ = read_tensors(run.state_path)
    write_tensors(run.state_path, tensors, {**values, **changes})
    train_toy(resume=True)
    messages = [message.rpartition(":")[0] for message in caplog.messages if "before:" in message]
    assert messages == warnings


def test_the_averaged_weights_are_validated_and_saved(train_toy):
    run = train_toy("train.optimizer.average_decay=0.9", "train.max_updates=4")
    tensors = read_tensors(run.state_path).tensors
    best = run.load_best().tensors["output.projection.bias"]
    assert torch.equal(best, tensors["average/output.projection.bias"])
    assert not torch.equal(best, tensors["model/output.projection.bias"])


def test_cut_translations_are_warned_about_with_the_option(train_toy):
    limits = ["search.max_length_ratio=0.1", "search.max_length_extra=1"]
    settings = [*limits, "data.tokenizer.lowercase=true", "train.max_epochs=1"]
    run = train_toy(*settings)
    [validation] = events(run, "validation")
    [end] = events(run, "end")
    assert "case:lc" in validation["signature"]
    assert end["best_num_cut"] == validation["num_cut"] > 20
    assert "--max-length-ratio" in logged(run)


def test_a_model_that_only_guesses_is_warned_about_with_the_setting(train_toy):
    run = train_toy("train.max_epochs=1", "train.optimizer.learning_rate=100")
    assert "learning_rate=100" in logged(run)


def test_pairs_that_are_dropped_or_in_training_too_are_warned_about(train_toy, toy_corpus, caplog):
    train_text = toy_corpus / "train"
    run = train_toy(
        f"data.valid={train_text}",
        f"data.test={{same: {train_text}}}",
        "data.max_length=10",
        "train.validation.num_pairs=2",
        "train.max_updates=1",
    )
    num_dropped = prepare_corpus(run.config).audit["train"]["dropped"]["over_long"]
    assert re.search(rf"{num_dropped} .*data\.max_length", caplog.text)
    for split in ("valid", "same"):
        assert f"{split}: {160 - num_dropped} of 160 pairs" in caplog.text
