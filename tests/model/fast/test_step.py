"""The fast step against the model's own, through the searches that use it."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.fast import step as fast_step
from seq2seq_attn.model.fast.step import FastStep
from seq2seq_attn.model.fast.unroll import known_score
from seq2seq_attn.model.variants import packaged_variants
from seq2seq_attn.search.steps import PlainSteps, step_model
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK
from tests.model.conftest import NUM_SOURCE_IDS
from tests.search.searching import search

VARIANTS = packaged_variants("attention")
LIMITS = [9, 12, 5, 12, 7, 12]
READOUTS = pytest.mark.parametrize(
    "readout",
    [
        {},
        {"readout_size": None, "tie_embeddings": "none"},
    ],
    ids=["readout", "joined"],
)


@pytest.fixture
def source():
    generator = torch.Generator().manual_seed(4)
    lengths = (4, 1, 7, 3, 0, 5)
    return collate_source(
        [torch.randint(4, NUM_SOURCE_IDS, (n,), generator=generator).tolist() for n in lengths]
    )


@pytest.fixture
def make_sharp(make_model):
    """Models whose next token depends on what went before, and which end sentences at different
    lengths."""

    def make(name="additive", *, dtype=torch.float32, **overrides):
        model = make_model(
            name,
            dtype=dtype,
            seed=1,
            **overrides,
        ).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2.5)
            model.output.projection.bias[EOS] += 1.0
        return model

    return make


def searched(model, source, beam_size):
    return search(
        model,
        source,
        LIMITS,
        beam_size=beam_size,
        n_best=beam_size,
        length_penalty=0.6,
    )


CASES = [(name, "softmax") for name in VARIANTS]
CASES += [("additive", "lexical"), ("scaled_dot", "lexical"), ("uniform", "lexical")]


@pytest.mark.parametrize("beam_size", [1, 3])
@READOUTS
@pytest.mark.parametrize(("name", "output"), CASES)
def test_hypotheses_are_the_plain_steps(make_sharp, source, name, output, readout, beam_size):
    model = make_sharp(name, output={"name": output}, **readout)
    steps = step_model(model)
    assert isinstance(steps, steps_of(model))
    expected = searched(PlainSteps(model), source, beam_size)
    assert len({len(best.ids) for best, *_ in expected}) > 1  # sentences leave one after another
    for ours, theirs in zip(searched(steps, source, beam_size), expected, strict=True):
        for fast, plain in zip(ours, theirs, strict=True):
            assert (fast.ids, fast.is_finished) == (plain.ids, plain.is_finished)
            assert fast.log_prob == pytest.approx(plain.log_prob, abs=1e-5)
            if plain.weights_TS is None:
                assert fast.weights_TS is None
            else:
                np.testing.assert_allclose(fast.weights_TS, plain.weights_TS, atol=1e-5)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_known_score_takes_the_fast_step_of_the_conditional_decoder_too(make_model, name):
    model = make_model(name, decoder={"name": "conditional"})
    assert isinstance(step_model(model), steps_of(model))


def steps_of(model):
    return PlainSteps if known_score(model.decoder.attention) is None else FastStep


@pytest.mark.parametrize("rows", [1, 3])
@READOUTS
@pytest.mark.parametrize("decoder", ["bahdanau", "conditional"])
@pytest.mark.parametrize("name", "additive dot scaled_dot slots uniform fixed initial".split())
@torch.no_grad()
def test_steps_and_reordering_in_double_precision(make_model, source, name, decoder, readout, rows):
    model = make_model(name, decoder={"name": decoder}, **readout).eval()
    for parameter in model.parameters():  # biases too, which start at 0
        parameter.add_(0.1 * torch.randn_like(parameter))
    plain = PlainSteps(model)
    fast = FastStep(model)
    plain_state = plain.start(source, rows)
    fast_state = fast.start(source, rows)
    ids = torch.full((6 * rows,), BOS)
    generator = torch.Generator().manual_seed(5)
    for kept_sentences in ([5, 0, 2], [2], [0], []):
        expected, plain_state = plain.step(ids, plain_state)
        scores, fast_state = fast.step(ids, fast_state)
        assert_close(scores.log_probs(), expected.log_probs())
        assert_close(scores.weights_RS, expected.weights_RS)
        sentences = torch.tensor(kept_sentences, dtype=torch.int64).unsqueeze(1)
        slots = torch.randint(0, rows, (len(sentences), rows), generator=generator)
        index = (sentences * rows + slots).flatten()
        plain_state = plain.reorder(plain_state, index)
        fast_state = fast.reorder(fast_state, index)
        ids = torch.randint(4, 31, (len(index),), generator=generator)


def test_an_unknown_combination_takes_the_models_own_step(make_sharp):
    model = make_sharp(decoder={"name": "luong", "cell": "lstm"})
    assert isinstance(step_model(model, "bf16"), PlainSteps)
    with pytest.raises(UsageError, match="precision 'int8'"):
        step_model(model, "int8")


@pytest.mark.parametrize("num_rows", [1, 32, 33, 70])
@pytest.mark.parametrize("num_candidates", [1, 5])
def test_the_best_tokens_are_those_of_the_normalized_logits(num_rows, num_candidates):
    generator = torch.Generator().manual_seed(num_rows)
    logits = torch.randn(num_rows, 90, generator=generator) * 3.0 + 5.0
    expected = torch.log_softmax(logits, dim=-1)
    expected[:, [PAD, BOS, UNK]] = -torch.inf
    top = expected.topk(num_candidates, dim=-1)
    tokens = fast_step.FastTokens(logits, torch.clone, None, num_rows=32)
    log_probs, ids = tokens.top(num_candidates, forbidden=(PAD, BOS, UNK))
    assert_close(log_probs, top.values)
    assert torch.equal(ids, top.indices)
    _, ids = tokens.top(num_candidates, forbidden=(PAD, BOS, UNK), stride=3)
    assert torch.equal(ids, top.indices[::3])


def test_a_large_vocabulary_goes_without_a_table(monkeypatch, make_sharp, source):
    model = make_sharp()
    expected = searched(FastStep(model), source, 1)
    monkeypatch.setattr(fast_step, "_MAX_TABLE_NUMBERS", 10)
    hypotheses = searched(FastStep(model), source, 1)
    assert [best.ids for [best] in hypotheses] == [best.ids for [best] in expected]


@pytest.mark.parametrize(
    ("precision", "largest"),
    [
        ("bf16", 0.05),
        ("int8", 0.1),
    ],
)
@pytest.mark.parametrize("name", ["additive", "dot", "fixed", "scaled_dot"])
@torch.no_grad()
def test_fewer_bits_are_close(make_model, source, name, precision, largest):
    model = make_model(name, dtype=torch.float32).eval()

    def log_probs(steps):
        scores, _ = steps.step(torch.full((6,), BOS), steps.start(source, 1))
        return scores.log_probs()

    difference = log_probs(step_model(model, precision)) - log_probs(PlainSteps(model))
    assert 0.0 < difference.abs().max().item() < largest
