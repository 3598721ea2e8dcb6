"""Variants of all axes together: a sample of combinations trains and searches, or says why it cannot."""

import itertools
import random

import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import collate
from seq2seq_attn.data.surface import surface_of
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model import speed
from seq2seq_attn.model.build import build_model
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.search.beam import beam_search
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.search.steps import PlainSteps, step_model
from seq2seq_attn.text.vocab import UNK
from seq2seq_attn.train.loss import batch_loss

CHOICES = {
    axis: packaged_variants(axis) for axis in ("encoder", "cell", "attention", "normalizer", "decoder", "output")
}
CHOICES["num_layers"] = ["1", "2"]
"""of the decoder"""
MAX_DRAWS = 50
SOURCE, TARGET = [[5, 9, 4, 11], [7], [8, 8, 6]], [[6, UNK], [8, UNK, 9], []]
SURFACES = [surface_of([6, 17, 8, 17], [6, 17], 17), surface_of([18], [8, 19, 9], 17), surface_of([5, 5, 6], [], 17)]


def sample():
    """Every variant once, in a combination that works if there is one."""
    for axis, names in CHOICES.items():
        for name in names:
            generator = random.Random(f"{axis} {name}")
            drawn = [
                tuple(name if other == axis else generator.choice(CHOICES[other]) for other in CHOICES)
                for _ in range(MAX_DRAWS)
            ]
            yield next((combination for combination in drawn if works(combination)), drawn[0])


def works(combination):
    try:
        build(*combination)
    except UsageError:
        return False
    return True


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


SAMPLE = sorted(set(sample()))
ANY = random.Random(1).sample(list(itertools.product(*CHOICES.values())), 12)
"""some of these are refused"""


def test_every_variant_is_in_a_combination_that_works():
    tried = [set(zip(CHOICES, names, strict=True)) for names in SAMPLE if works(names)]
    assert {(axis, name) for axis, names in CHOICES.items() for name in names} == set.union(*tried)


@pytest.mark.parametrize("names", sorted({*SAMPLE, *ANY}), ids=" ".join)
def test_a_combination_works_or_says_why_not(names):
    try:
        model = build(*names)
    except UsageError as error:
        pytest.skip(str(error))
    batch = collate(SOURCE, TARGET, range(3), surfaces=SURFACES)
    loss = batch_loss(model, batch, label_smoothing=0.1, teacher_forcing_ratio=0.5).loss_sum
    if not loss.requires_grad:
        pytest.skip("nothing to learn: fixed weights are the answer")
    loss.backward()
    missing = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    # without weights of its own, an output reads no features
    assert list(model.output.parameters()) == [] or missing == []
    model.eval()
    together = batch_loss(model, batch)
    pairs = zip(SOURCE, TARGET, SURFACES, strict=True)
    alone = [batch_loss(model, collate([s], [t], [0], surfaces=[surface])).loss_sum for s, t, surface in pairs]
    torch.testing.assert_close(together.loss_sum, sum(alone))
    with speed.plain():
        torch.testing.assert_close(batch_loss(model, batch).loss_sum, together.loss_sum)
    options, limits = SearchOptions(beam_size=3, n_best=3), [5, 6, 4]
    found, plain = (
        beam_search(steps, batch.source, options, max_lengths_B=limits)
        for steps in (step_model(model), PlainSteps(model))
    )
    assert [[h.ids for h in best] for best in found] == [[h.ids for h in best] for best in plain]


class Untidy(torch.nn.Module):
    """An encoder that leaves `garbage` on padding."""

    def __init__(self, encoder, garbage):
        super().__init__()
        self.encoder, self.garbage = encoder, garbage

    def forward(self, source):
        encoded = self.encoder(source)
        is_padding = ~encoded.mask_BS.unsqueeze(-1)
        values_BSM = encoded.values_BSM.masked_fill(is_padding, self.garbage)
        return encoded._replace(
            values_BSM=values_BSM, embedded_BSE=encoded.embedded_BSE.masked_fill(is_padding, self.garbage)
        )


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize("output", CHOICES["output"])
@pytest.mark.parametrize("attention", ["additive", "slots"])
def test_what_an_encoder_leaves_on_padding_changes_nothing_bit_for_bit(attention, output, garbage):
    try:
        model = build("bidirectional", "gru", attention, "softmax", "bahdanau", output, "1").eval()
    except UsageError as error:
        pytest.skip(str(error))
    batch = collate(SOURCE, TARGET, range(3), surfaces=SURFACES)
    clean = batch_loss(model, batch).loss_sum
    model.encoder = Untidy(model.encoder, garbage)
    assert torch.equal(batch_loss(model, batch).loss_sum, clean)


@pytest.mark.parametrize("names", SAMPLE, ids=" ".join)
def test_half_precision_stays_finite(names):
    try:
        model = build(*names, dtype=torch.float32)
    except UsageError as error:
        pytest.skip(str(error))
    batch = collate(SOURCE, TARGET, range(3), surfaces=SURFACES)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = batch_loss(model, batch)
    if not loss.loss_sum.requires_grad:
        pytest.skip("nothing to learn: fixed weights are the answer")
    loss.loss_sum.backward()
    assert torch.isfinite(loss.loss_sum)
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters() if parameter.grad is not None)
