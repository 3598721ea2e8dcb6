"""Variants of all axes together: a combination is in the table of refusals, with its reason, or it
works."""

import random
from contextlib import nullcontext
from itertools import product

import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import collate
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model import speed
from seq2seq_attn.model.attention.additive import Additive
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.search.steps import PlainSteps, step_model
from seq2seq_attn.text.vocab import UNK
from seq2seq_attn.train.loss import batch_loss
from tests.contract.chosen import MODULES, variants
from tests.extended import extend
from tests.modules import assert_gradients_are_finite, gradients, half_precision
from tests.search.searching import search

BASE = {
    "encoder": "bidirectional",
    "cell": "gru",
    "attention": "additive",
    "normalizer": "softmax",
    "decoder": "bahdanau",
    "output": "softmax",
}
CHOICES = {axis: packaged_variants(axis) for axis in BASE}
BASE["num_layers"] = "1"
CHOICES["num_layers"] = ["1", "2"]
"""of the decoder"""
SOURCE = [
    [5, 9, 4, 11],
    [7],
    [8, 8, 6],
]
TARGET = [[6, UNK], [8, UNK, 9], []]
EXTENDED = [
    extend([6, 17, 8, 17], [6, 17], 17),
    extend([18], [8, 19, 9], 17),
    extend([5, 5, 6], [], 17),
]

WITHOUT_POSITIONS = ("fixed", "initial", "slots")
READ_WEIGHTS = ("copy", "lexical", "lexicon", "marginal", "pointer")
REFUSED = {
    **dict.fromkeys(
        product(WITHOUT_POSITIONS, READ_WEIGHTS), "reads attention weights over source positions"
    ),
    ("uniform", "pointer"): "there is nothing to learn",
    ("hard", "marginal"): "gives all weight to one position",
    **dict.fromkeys(product(["key_value", "self_history"], ["marginal"]), "reads a source value"),
}
"""(attention, output) and the reason; every other pair works with the decoder `conditional`"""


def is_refused(parts):
    if parts["decoder"] == "bahdanau" and parts["output"] == "pointer":
        return True
    return (parts["attention"], parts["output"]) in REFUSED


def draw(axis, name):
    """A random combination with this variant that works."""
    generator = random.Random(f"{axis} {name}")
    while True:
        parts = {other: generator.choice(names) for other, names in CHOICES.items()}
        parts[axis] = name
        if not is_refused(parts):
            return parts


def sample():
    """For each variant, a combination with it; for one from outside the package, whose refusals
    are not known here, that with the parts of `BASE`."""
    for axis, names in CHOICES.items():
        if not MODULES:
            yield from (draw(axis, name) for name in names)
        elif axis != "num_layers":
            yield from (BASE | {axis: name} for name in variants(axis))


SAMPLE = sorted({tuple(parts.values()) for parts in sample()})


def build(*names, dtype=torch.float64):
    """A model of these parts, in the order of `BASE`."""
    parts = dict(zip(BASE, names, strict=True))
    encoder = parts["encoder"]
    torch.manual_seed(1)
    config = ModelConfig(
        embedding_size=11,
        hidden_size=14,
        readout_size=11,
        encoder={
            "name": encoder,
            "cell": parts["cell"],
            "hidden_size": 14 if encoder == "reversed" else 7,
            "num_layers": 1 if encoder == "embeddings" else 2,
        },
        attention={"name": parts["attention"], "normalizer": parts["normalizer"]},
        decoder={
            "name": parts["decoder"],
            "cell": parts["cell"],
            "num_layers": int(parts["num_layers"]),
        },
        output={"name": parts["output"]},
        dropout={
            "embedding": 0.2,
            "encoder": 0.2,
            "readout": 0.2,
        },
    )
    return build_model(config, num_source_ids=15, num_target_ids=17).to(dtype)


def build_with(**parts):
    return build(*(BASE | parts).values())


@pytest.mark.parametrize("output", CHOICES["output"])
@pytest.mark.parametrize("attention", CHOICES["attention"])
def test_an_attention_works_with_every_output_or_is_refused_for_a_reason(attention, output):
    reason = REFUSED.get((attention, output))
    with pytest.raises(UsageError, match=reason) if reason else nullcontext():
        build_with(
            attention=attention,
            decoder="conditional",
            output=output,
        )


@pytest.mark.parametrize("output", ["copy", "lexicon", "marginal", "pointer"])
def test_outputs_that_take_weights_for_probabilities_need_a_distribution(output, monkeypatch):
    monkeypatch.setattr(Additive, "is_distribution", False)
    with pytest.raises(UsageError, match=r"model.attention.name='additive'"):
        build_with(decoder="conditional", output=output)


@pytest.mark.parametrize("decoder", CHOICES["decoder"])
def test_pointer_needs_a_query_that_has_read_the_previous_token(decoder):
    reason = "previous token" if decoder == "bahdanau" else None
    with pytest.raises(UsageError, match=reason) if reason else nullcontext():
        build_with(decoder=decoder, output="pointer")


@pytest.mark.parametrize("names", SAMPLE, ids=" ".join)
def test_every_parameter_of_a_combination_learns(names):
    model = build(*names)
    loss = batch_loss(model, make_batch(), label_smoothing=0.1, teacher_forcing_ratio=0.5)
    loss.loss_sum.backward()
    # without weights of its own, an output reads no features
    if list(model.output.parameters()):
        assert gradients(model).keys() == dict(model.named_parameters()).keys()


@pytest.mark.parametrize("names", SAMPLE, ids=" ".join)
def test_the_loss_of_a_combination_is_that_of_its_sentences_and_of_the_plain_steps(names):
    model = build(*names).eval()
    batch = make_batch()
    together = batch_loss(model, batch).loss_sum
    alone = [batch_loss(model, make_batch(slice(row, row + 1))).loss_sum for row in range(3)]
    torch.testing.assert_close(together, sum(alone))
    with speed.plain():
        torch.testing.assert_close(batch_loss(model, batch).loss_sum, together)


@pytest.mark.parametrize("names", SAMPLE, ids=" ".join)
def test_a_combination_searches_as_its_plain_steps(names):
    model = build(*names).eval()

    def translate(steps):
        found = search(steps, make_batch().source, [5, 6, 4], beam_size=3, n_best=3)
        return [[hypothesis.ids for hypothesis in hypotheses] for hypotheses in found]

    assert translate(step_model(model)) == translate(PlainSteps(model))


def make_batch(rows=slice(None)):
    batch = collate(SOURCE[rows], TARGET[rows], range(3)[rows], extended=EXTENDED[rows])
    return batch.to(torch.get_default_device())


class Untidy(torch.nn.Module):
    """An encoder that leaves `garbage` on padding."""

    keeps_positions = True

    def __init__(self, encoder, garbage):
        super().__init__()
        self.encoder = encoder
        self.garbage = garbage

    def forward(self, source):
        encoded = self.encoder(source)
        is_padding = ~encoded.mask_BS.unsqueeze(-1)
        values_BSM = encoded.values_BSM.masked_fill(is_padding, self.garbage)
        embedded_BSE = encoded.embedded_BSE.masked_fill(is_padding, self.garbage)
        return encoded._replace(values_BSM=values_BSM, embedded_BSE=embedded_BSE)


PADDED = [*product(["additive", "slots"], CHOICES["output"])]
PADDED = [pair for pair in PADDED if pair not in REFUSED]


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize(("attention", "output"), PADDED)
def test_what_an_encoder_leaves_on_padding_changes_nothing_bit_for_bit(attention, output, garbage):
    model = build_with(
        attention=attention,
        decoder="conditional",
        output=output,
    ).eval()
    batch = make_batch()
    clean = batch_loss(model, batch).loss_sum
    model.encoder = Untidy(model.encoder, garbage)
    assert torch.equal(batch_loss(model, batch).loss_sum, clean)


@pytest.mark.parametrize("names", SAMPLE, ids=" ".join)
def test_half_precision_stays_finite(names):
    model = build(*names, dtype=torch.float32)
    with half_precision():
        loss = batch_loss(model, make_batch())
    loss.loss_sum.backward()
    assert torch.isfinite(loss.loss_sum)
    assert_gradients_are_finite(model)
