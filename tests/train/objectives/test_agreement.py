"""Agreement: two directions trained together. The first is disturbed by nothing but the weight; the
second is a run."""

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.config import load_config
from seq2seq_attn.data.batch import swapped
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.run import Run
from seq2seq_attn.train.check import check_config
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.reverse import reverse_config
from tests.train import test_update
from tests.train.runs import assert_same_end, events, train_and_die
from tests.train.test_update import (
    NUM_IDS,
    SOURCES,
    TARGETS,
    assert_close,
    batch,
    config,
    gradients,
    make,
)

AGREEMENT = "train.objectives={agreement: {weight: 2}}"
UNCLIPPED = "train.optimizer.clip_norm=null"


def updater(*overrides):
    torch.manual_seed(2)
    reverse = build_model(config().model, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS)
    return test_update.updater(AGREEMENT, *overrides, reverse=reverse)


def test_the_gradient_is_that_of_both_losses_and_the_trace_bonus():
    learner = updater(UNCLIPPED)
    oracle = updater()
    pairs = batch(range(6))
    result = make(learner)
    other = swapped(pairs)
    outputs = oracle.model(pairs)
    reverse_outputs = oracle.reverse(other)
    loss = oracle.model.output.loss(outputs, label_smoothing=0.0).loss_sum
    reverse_loss = oracle.reverse.output.loss(reverse_outputs, label_smoothing=0.0).loss_sum
    trace = torch.zeros(())
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        weights_TS = outputs.weights_TBS[: len(target) + 1, row, : len(source) + 1]
        reverse_ST = reverse_outputs.weights_TBS[: len(source) + 1, row, : len(target) + 1]
        trace = trace + torch.trace(weights_TS @ reverse_ST)
    num_target = pairs.num_tokens
    num_source = other.num_tokens
    (loss / num_target - 2 * trace / num_target + reverse_loss / num_source).backward()
    assert_close(gradients(learner), gradients(oracle))
    assert result.terms["agreement"] == (pytest.approx(-trace.item(), rel=1e-5), num_target)
    assert result.terms["reverse"] == (pytest.approx(reverse_loss.item(), rel=1e-5), num_source)


def test_label_smoothing_acts_on_both_models():
    learner = updater()
    pairs = batch(range(6))
    for label_smoothing in (0.0, 0.2):
        terms = batch_loss(
            learner.model, pairs, label_smoothing=label_smoothing, reverse=learner.reverse
        ).terms
        alone = batch_loss(learner.reverse, swapped(pairs), label_smoothing=label_smoothing)
        assert terms[-1].item() == pytest.approx(alone.loss_sum.item(), rel=1e-5)
    assert alone.loss_sum.item() != pytest.approx(alone.nll_sum.item(), rel=1e-4)


def test_each_model_is_clipped_by_its_own_norm():
    learner = updater("train.optimizer.clip_norm=0.01")
    assert make(learner).gradient_norm > 0.01
    for model in ("model.", "reverse."):
        own = [gradient for name, gradient in gradients(learner).items() if name.startswith(model)]
        assert sum(gradient.square().sum().item() for gradient in own) == pytest.approx(
            1e-4, rel=1e-3
        )


@pytest.fixture
def toy(toy_config):
    def make(*overrides):
        return toy_config("train.objectives={agreement: {}}", *overrides)

    return make


def test_with_a_weight_of_zero_the_first_model_is_what_it_is_alone(train_toy, toy, tmp_path):
    settings = "train.optimizer.average_decay=0.9", "train.max_epochs=1"
    alone = train_toy(*settings, name="alone")
    both = train(toy(*settings, "train.objectives.agreement.weight=0"), run_dir=tmp_path / "both")
    assert both.model_path.read_bytes() == alone.model_path.read_bytes()
    lines = [
        {key: value for key, value in line.items() if key != "objectives"} for line in events(both)
    ]
    assert lines == events(alone)
    measured = [line["objectives"] for line in events(both, "train")]
    assert measured[-1]["reverse"] < measured[0]["reverse"]


def test_the_run_holds_a_run_of_the_other_direction(toy, tmp_path):
    run = train(toy("search.max_length_extra=0", "train.max_epochs=1"), run_dir=tmp_path / "run")
    reverse = Run(run.path / "reverse")
    assert reverse.is_finished()
    assert reverse.environment["packages"] == run.environment["packages"]
    assert reverse.load_best().values["update"] == run.load_best().values["update"]
    there = run.config
    back = reverse.config
    assert (back.data.source_language, back.data.target_language) == ("en", "de")
    assert (back.name, back.train.objectives) == ("toy-reverse", {})
    assert back.search.max_length_ratio != there.search.max_length_ratio
    translator = load(reverse.path)
    assert translator.source_vocab.tokens == load(run.path).target_vocab.tokens
    assert isinstance(translator.translate(["dog cat"])[0].text, str)
    again = train(toy("train.max_updates=1"), run_dir=run.path, overwrite=True)
    assert Run(again.path / "reverse").load_best().values["update"] == 1


def test_the_texts_of_the_other_direction_are_exchanged():
    texts = [
        "data.train=[a.de, b.en]",
        "data.valid=c",
        "data.test={t: [d.de, d.en], u: e}",
        "data.extra=[[f.de, f.en]]",
    ]
    data = reverse_config(load_config([], ["data.corpus=files", "data.links=ibm1", *texts])).data
    assert (data.train, data.valid, data.links) == (["b.en", "a.de"], "c", None)
    assert (data.test, data.extra) == ({"t": ["d.en", "d.de"], "u": "e"}, [["f.en", "f.de"]])


def test_killed_and_resumed_equals_never_killed(toy, tmp_path):
    settings = toy(
        "train.optimizer.average_decay=0.9",
        "train.max_epochs=1",
        "train.validation.every_updates=7",
    )
    expected = train(settings, run_dir=tmp_path / "whole")
    train_and_die(7, settings, run_dir=tmp_path / "killed")
    run = train(settings, run_dir=tmp_path / "killed", resume=True)
    assert_same_end(run, expected)
    assert run.reverse.model_path.read_bytes() == expected.reverse.model_path.read_bytes()
    assert run.reverse.is_finished()


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.output.name=copy"], r"model\.output\.name=copy"),
        (["model.output.name=lexicon"], r"model\.output\.name=lexicon"),
        (["data.source_languages=[de, fr]"], r"data\.source_languages"),
        (["data.source_language=vectors"], r"data\.source_language"),
        (["data.tokenizer.target=characters"], r"data\.tokenizer\.target"),
        (["data.tokenizer.sentences=true"], r"data\.tokenizer\.sentences=true"),
        (["model.embedding.source_vectors=x.vec"], r"model\.embedding\.source_vectors"),
        (["data.corpus=files", "data.train=x.tsv.xz"], "a table"),
        (["model.attention={name: initial}"], r"model\.attention\.name='initial'"),
        (
            ["model.attention={name: hard, options: {estimator: reinforce}}"],
            "draws source positions",
        ),
    ],
)
def test_what_has_one_direction_is_refused_before_data_is_prepared(overrides, message):
    more = ["train.objectives.reinforce={}"] if "reinforce" in overrides[0] else []
    with pytest.raises(UsageError, match=rf"^train\.objectives\.agreement.*{message}"):
        check_config(load_config(["objective/agreement"], [*overrides, *more]))
