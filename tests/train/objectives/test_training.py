"""Objectives in training: one update however its batches are cut, a record of their means, an exact resume."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.batch import Batch, collate
from seq2seq_attn.model.build import build_model
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.batches import UpdateBatches
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.loss import batch_loss, build_objectives
from seq2seq_attn.train.objectives import fertility, guided
from seq2seq_attn.train.schedules import Schedules
from seq2seq_attn.train.update import Updater, UpdateResult
from tests.train.conftest import ConfigMaker
from tests.train.test_loop import assert_same_end, events, train_and_die
from tests.train.test_update import NUM_IDS, SOURCES, TARGETS, config, gradients

ALL = "train.objectives={guided: {weight: 2}, coverage: {}, fertility: {weight: 0.5}, entropy: {weight: 0}}"
LINKS = [[(0, 0), (1, 0), (2, 1)], [(0, 6)], [], [], [(2, 0)], [(0, 0), (0, 2)]]


def make_batch(indices: Sequence[int]) -> Batch:
    links = [np.array(LINKS[i], dtype=np.int32).reshape(-1, 2) for i in indices]
    return collate([SOURCES[i] for i in indices], [TARGETS[i] for i in indices], indices, links)


def make(updater: Updater, *rows: Sequence[int]) -> UpdateResult:
    batches = [make_batch(indices) for indices in rows]
    whole = UpdateBatches(batches, [list(indices) for indices in rows], sum(one.num_tokens for one in batches))
    return updater.train_step(whole, update=0, learning_rate=0.1, teacher_forcing_ratio=1.0)


def updater(*overrides: str) -> Updater:
    torch.manual_seed(1)
    settings = config("train.optimizer.clip_norm=null", "data.links=ibm1", *overrides)
    model = build_model(settings.model, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS)
    objectives = build_objectives(settings, model)
    return Updater(model, settings.train, device=torch.device("cpu"), precision="fp32", objectives=objectives)


def test_accumulated_micro_batches_are_one_big_batch() -> None:
    together, apart = updater(ALL), updater(ALL)
    one = make(together, range(6))
    several = make(apart, [0, 5], [2, 3], [1, 4])  # the one in the middle has no link
    assert one.terms.keys() == several.terms.keys() == {"guided", "coverage", "fertility", "entropy"}
    for name, (total, count) in one.terms.items():
        assert several.terms[name] == (pytest.approx(total, rel=1e-5), count)
    assert [one.terms[name][1] for name in ("guided", "coverage", "fertility")] == [6, 23, 21]
    expected = gradients(together)
    for name, gradient in gradients(apart).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-6)


def test_the_gradient_is_that_of_the_loss_and_the_weighted_means() -> None:
    learner, oracle = updater("train.objectives={guided: {weight: 3}, fertility: {weight: 0.5}}"), updater()
    make(learner, range(6))
    batch = make_batch(range(6))
    loss = batch_loss(oracle.model.train(), batch, objectives=[guided.Guided(), fertility.Fertility(1.0)])
    num_linked, num_sources = 6, 21
    terms = 3 * loss.terms[0] / num_linked + 0.5 * loss.terms[1] / num_sources
    (loss.loss_sum / 23 + terms).backward()
    expected = gradients(oracle)
    for name, gradient in gradients(learner).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-4, atol=1e-6)


def test_a_weight_of_zero_only_measures() -> None:
    plain, measured = updater(), updater("train.objectives={coverage: {weight: 0}}")
    make(plain, range(6))
    assert make(measured, range(6)).terms["coverage"][0] > 0
    assert all(torch.equal(gradient, gradients(plain)[name]) for name, gradient in gradients(measured).items())


@pytest.fixture
def guided_config(toy_config: ConfigMaker, toy_corpus: Path, tmp_path: Path) -> Callable[..., Config]:
    lengths = [len(line.split()) for line in (toy_corpus / "train.de").read_text().splitlines()]
    path = tmp_path / "train.links"
    path.write_text("".join(" ".join(f"{i}-{n - 1 - i}" for i in range(n)) + "\n" for n in lengths))

    def make(*overrides: str) -> Config:
        objectives = "train.objectives={guided: {}, entropy: {weight: 0.1}}"
        return toy_config(objectives, f"data.links={path}", f"data.data_dir={tmp_path}", *overrides)

    return make


def means(run: RunDir) -> list[dict[str, float]]:
    return [line["objectives"] for line in events(run, "train")]


def test_means_are_on_record_and_fall(guided_config: Callable[..., Config], tmp_path: Path) -> None:
    run = train(guided_config("train.optimizer.learning_rate=0.01"), run_dir=tmp_path / "run")
    found = means(run)
    assert [list(one) for one in found] == [["guided", "entropy"]] * 6
    assert found[-1]["guided"] < 0.95 * found[0]["guided"]
    last = json.loads(json.dumps(found[-1]))
    text = (run.path / "train.log").read_text(encoding="utf-8")
    assert f", guided {last['guided']:.4f}, entropy {last['entropy']:.4f}, gradient norm" in text
    accumulator = EventAccumulator(str(run.path))
    accumulator.Reload()
    curve = [event.value for event in accumulator.Scalars("train/objectives/guided")]
    assert curve == pytest.approx([one["guided"] for one in found])


def test_before_its_start_an_objective_changes_nothing(toy_config: ConfigMaker, tmp_path: Path) -> None:
    late = "train.objectives={coverage: {weight: 5, start: 0.5}}"
    plain, changed = (train(toy_config(*own), run_dir=tmp_path / f"run{len(own)}") for own in ((), (late,)))
    losses, other = ([line["loss"] for line in events(run, "train")] for run in (plain, changed))
    assert other[:3] == losses[:3]  # up to update 9 of 20
    assert all(one != another for one, another in zip(other[4:], losses[4:], strict=True))
    assert len(means(changed)) == len(losses) == 6


@pytest.mark.parametrize(("num_updates", "late"), [(0, ["coverage"]), (10, ["coverage"]), (11, []), (20, [])])
def test_an_objective_is_late_until_its_first_update(num_updates: int, late: list[str]) -> None:
    objectives = "{coverage: {start: 0.5}, entropy: {weight: 0, start: 0.5}, fertility: {end: 0.5}}"
    config = load_config((), [f"train.objectives={objectives}", "train.max_epochs=2"])
    schedules = Schedules(config.train, updates_per_epoch=10)
    assert schedules.late_objectives(num_updates) == late
    acting = [bool(schedules.objective_weights(update)["coverage"]) for update in range(num_updates)]
    assert any(acting) != bool(late)


def test_killed_and_resumed_equals_never_killed(guided_config: Callable[..., Config], tmp_path: Path) -> None:
    config = guided_config("train.max_epochs=1", "train.batch.accumulate=2")
    expected = train(config, run_dir=tmp_path / "whole")
    # a state is saved after every second update: the means of a line go over the kill
    train_and_die(3, config, run_dir=tmp_path / "killed")
    assert_same_end(train(config, run_dir=tmp_path / "killed", resume=True), expected)
    assert len(means(expected)) == 1
