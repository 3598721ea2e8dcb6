"""Objectives in training: one update however its batches are cut, a record of their means, an exact
resume."""

import copy

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from seq2seq_attn.config import load_config
from seq2seq_attn.model.build import build_model
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.objectives import fertility, guided
from seq2seq_attn.train.schedules import Schedules
from tests.train.runs import events
from tests.train.test_update import (
    NUM_IDS,
    TARGETS,
    assert_close,
    batch,
    config,
    gradients,
    make,
    updater,
)

UNCLIPPED = "train.optimizer.clip_norm=null"
ALL = (
    "train.objectives={guided: {weight: 2}, coverage: {}, fertility: {weight: 0.5}, "
    "entropy: {weight: 0}, agreement: {}}"
)


def test_accumulated_micro_batches_are_one_big_batch():
    torch.manual_seed(2)
    reverse = build_model(config().model, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS)
    together, apart = (updater(ALL, UNCLIPPED, reverse=copy.deepcopy(reverse)) for _ in range(2))
    one = make(together)
    several = make(apart, [0, 5], [2, 3], [1, 4])  # the pairs in the middle have no link
    assert several.num_tokens == one.num_tokens == sum(len(target) + 1 for target in TARGETS)
    assert several.loss_sum == pytest.approx(one.loss_sum, rel=1e-5)
    assert several.gradient_norm == pytest.approx(one.gradient_norm, rel=1e-5)
    assert one.terms.keys() == several.terms.keys()
    for name, (total, count) in one.terms.items():
        assert several.terms[name] == (pytest.approx(total, rel=1e-5), count)
    counts = {
        "guided": 6,
        "coverage": 23,
        "fertility": 21,
        "entropy": 23,
        "agreement": 23,
        "reverse": 21,
    }
    assert {name: count for name, (_, count) in one.terms.items()} == counts
    assert_close(gradients(apart), gradients(together))


def test_the_gradient_is_that_of_the_loss_and_the_weighted_means():
    learner = updater("train.objectives={guided: {weight: 3}, fertility: {weight: 0.5}}", UNCLIPPED)
    oracle = updater()
    make(learner)
    loss = batch_loss(
        oracle.model.train(),
        batch(range(6)),
        objectives=[guided.Guided(), fertility.Fertility()],
    )
    num_linked = 6
    num_sources = 21
    (
        loss.loss_sum / 23 + 3 * loss.terms[0] / num_linked + 0.5 * loss.terms[1] / num_sources
    ).backward()
    assert_close(gradients(learner), gradients(oracle))


def test_a_weight_of_zero_only_measures():
    plain = updater()
    measured = updater("train.objectives={coverage: {weight: 0}}")
    make(plain)
    assert make(measured).terms["coverage"][0] > 0
    assert all(
        torch.equal(gradient, gradients(plain)[name])
        for name, gradient in gradients(measured).items()
    )


def test_an_objective_without_terms_adds_nothing():
    plain = updater()
    guided = updater("train.objectives={guided: {weight: 1}}")
    result = make(guided, [2])  # a pair without links
    assert result.terms == {"guided": (0.0, 0)}
    assert result.gradient_norm == make(plain, [2]).gradient_norm


@pytest.fixture
def guided_config(toy_config, toy_corpus, tmp_path):
    lengths = [len(line.split()) for line in (toy_corpus / "train.de").read_text().splitlines()]
    path = tmp_path / "train.links"
    path.write_text("".join(" ".join(f"{i}-{n - 1 - i}" for i in range(n)) + "\n" for n in lengths))

    def make(*overrides):
        objectives = "train.objectives={guided: {}, entropy: {weight: 0.1}}"
        return toy_config(objectives, f"data.links={path}", f"data.data_dir={tmp_path}", *overrides)

    return make


def means(run):
    return [line["objectives"] for line in events(run, "train")]


def test_means_are_on_record_and_fall(guided_config, tmp_path):
    run = train(guided_config("train.optimizer.learning_rate=0.01"), run_dir=tmp_path / "run")
    recorded = means(run)
    assert [list(one) for one in recorded] == [["guided", "entropy"]] * 6
    assert recorded[-1]["guided"] < 0.95 * recorded[0]["guided"]
    assert 0 < recorded[0]["entropy"] < 5  # nats per target token
    text = (run.path / "train.log").read_text("utf-8")
    assert f", guided {recorded[-1]['guided']:.4f}, entropy {recorded[-1]['entropy']:.4f}" in text
    accumulator = EventAccumulator(str(run.path))
    accumulator.Reload()
    curve = [event.value for event in accumulator.Scalars("train/objectives/guided")]
    assert curve == pytest.approx([one["guided"] for one in recorded])


def test_before_its_start_an_objective_changes_nothing(train_toy):
    late = "train.objectives={coverage: {weight: 5, start: 0.5}}"
    plain = train_toy("train.max_epochs=1", name="plain")
    changed = train_toy("train.max_epochs=1", late)
    losses = [line["loss"] for line in events(plain, "train")]
    other = [line["loss"] for line in events(changed, "train")]
    assert other[0] == losses[0]  # up to update 3 of 10
    assert other[2] != losses[2]
    assert len(means(changed)) == len(losses) == 3


@pytest.mark.parametrize(
    ("num_updates", "late"), [(0, ["coverage"]), (10, ["coverage"]), (11, []), (20, [])]
)
def test_an_objective_is_late_until_its_first_update(num_updates, late):
    objectives = "{coverage: {start: 0.5}, entropy: {weight: 0, start: 0.5}, fertility: {end: 0.5}}"
    config = load_config((), [f"train.objectives={objectives}", "train.max_epochs=2"])
    schedules = Schedules(config.train, updates_per_epoch=10)
    assert schedules.late_objectives(num_updates) == late
    acting = [
        bool(schedules.settings(update)["objective_weights"]["coverage"])
        for update in range(num_updates)
    ]
    assert any(acting) != bool(late)
