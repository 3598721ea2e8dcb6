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
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.search.steps import PlainSteps, step_model
from seq2seq_attn.text.vocab import UNK
from seq2seq_attn.train.loss import batch_loss
from tests.contract.chosen import MODULES, variants
from tests.extended import extend
from tests.search.searching import search

CHOICES = {
    axis: packaged_variants(axis)
    for axis in ("encoder", "cell", "attention", "normalizer", "decoder", "output")
}
CHOICES["num_layers"] = ["1", "2"]
"""of the decoder"""
BASE = dict(
    zip(
        CHOICES,
        ("bidirectional", "gru", "additive", "softmax", "bahdanau", "softmax", "1"),
        strict=True,
    )
)
SOURCE, TARGET = [[5, 9, 4, 11], [7], [8, 8, 6]], [[6, UNK], [8, UNK, 9], []]
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


def is_refused(combination):
    _, _, attention, _, decoder, output, _ = combination
    return (attention, output) in REFUSED or (decoder, output) == ("bahdanau", "pointer")


def sample():
    """For each variant, a combination with it that works: a random one, or that with the parts of
    `BASE` for a variant from outside the package, whose refusals are not known here."""
    for axis, names in CHOICES.items():
        if MODULES:
            names = [] if axis == "num_layers" else variants(axis)
            yield from (tuple({**BASE, axis: name}.values()) for name in names)
            continue
        for name in names:
            generator = random.Random(f"{axis} {name}")
            while is_refused(
                drawn := [name if x == axis else generator.choice(CHOICES[x]) for x in CHOICES]
            ):
                pass
            yield tuple(drawn)


SAMPLE = sorted(set(sample()))


def build(encoder, cell, attention, normalizer, decoder, output, num_layers, dtype=torch.float64):
    torch.manual_seed(1)
    config = ModelConfig(
        embedding_size=11,
        hidden_size=14,
        readout_size=11,
        encoder={
            "name": encoder,
            "cell": cell,
            "hidden_size": 14 if encoder == "reversed" else 7,
            "num_layers": 1 if encoder == "embeddings" else 2,
        },
        attention={"name": attention, "normalizer": normalizer},
        decoder={"name": decoder, "cell": cell, "num_layers": int(num_layers)},
        output={"name": output},
        dropout={"embedding": 0.2, "encoder": 0.2, "readout": 0.2},
    )
    return build_model(config, num_source_ids=15, num_target_ids=17).to(dtype)


@pytest.mark.parametrize("attention", CHOICES["attention"])
def test_an_attention_works_with_every_output_or_is_refused_for_a_reason(attention):
    for output in CHOICES["output"]:
        reason = REFUSED.get((attention, output))
        with pytest.raises(UsageError, match=reason) if reason else nullcontext():
            build("bidirectional", "gru", attention, "softmax", "conditional", output, "1")


@pytest.mark.parametrize("decoder", CHOICES["decoder"])
def test_pointer_needs_a_query_that_has_read_the_previous_token(decoder):
    reason = "previous token" if decoder == "bahdanau" else None
    with pytest.raises(UsageError, match=reason) if reason else nullcontext():
        build("bidirectional", "gru", "additive", "softmax", decoder, "pointer", "1")


@pytest.mark.parametrize("names", SAMPLE, ids=" ".join)
def test_a_combination_trains_and_searches(names):
    model = build(*names)
    batch = make_batch()
    batch_loss(model, batch, label_smoothing=0.1, teacher_forcing_ratio=0.5).loss_sum.backward()
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    # without weights of its own, an output reads no features
    assert list(model.output.parameters()) == [] or missing == []
    model.eval()
    together = batch_loss(model, batch)
    alone = [batch_loss(model, make_batch(slice(row, row + 1))).loss_sum for row in range(3)]
    torch.testing.assert_close(together.loss_sum, sum(alone))
    with speed.plain():
        torch.testing.assert_close(batch_loss(model, batch).loss_sum, together.loss_sum)
    found, plain = (
        search(steps, batch.source, [5, 6, 4], beam_size=3, n_best=3)
        for steps in (step_model(model), PlainSteps(model))
    )
    assert [[h.ids for h in best] for best in found] == [[h.ids for h in best] for best in plain]


def make_batch(rows=slice(None)):
    batch = collate(SOURCE[rows], TARGET[rows], range(3)[rows], extended=EXTENDED[rows])
    return batch.to(torch.get_default_device())


class Untidy(torch.nn.Module):
    """An encoder that leaves `garbage` on padding."""

    def __init__(self, encoder, garbage):
        super().__init__()
        self.encoder = encoder
        self.garbage = garbage

    def forward(self, source):
        encoded = self.encoder(source)
        is_padding = ~encoded.mask_BS.unsqueeze(-1)
        values_BSM = encoded.values_BSM.masked_fill(is_padding, self.garbage)
        return encoded._replace(
            values_BSM=values_BSM,
            embedded_BSE=encoded.embedded_BSE.masked_fill(is_padding, self.garbage),
        )


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize(
    ("attention", "output"),
    [pair for pair in product(["additive", "slots"], CHOICES["output"]) if pair not in REFUSED],
)
def test_what_an_encoder_leaves_on_padding_changes_nothing_bit_for_bit(attention, output, garbage):
    model = build("bidirectional", "gru", attention, "softmax", "conditional", output, "1").eval()
    batch = make_batch()
    clean = batch_loss(model, batch).loss_sum
    model.encoder = Untidy(model.encoder, garbage)
    assert torch.equal(batch_loss(model, batch).loss_sum, clean)


@pytest.mark.parametrize("names", SAMPLE, ids=" ".join)
def test_half_precision_stays_finite(names):
    model = build(*names, dtype=torch.float32)
    batch = make_batch()
    with torch.autocast(torch.get_default_device().type, dtype=torch.bfloat16):
        loss = batch_loss(model, batch)
    loss.loss_sum.backward()
    assert torch.isfinite(loss.loss_sum)
    assert all(
        torch.isfinite(parameter.grad).all()
        for parameter in model.parameters()
        if parameter.grad is not None
    )
