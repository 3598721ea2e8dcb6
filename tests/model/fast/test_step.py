"""The fast step against the model's own, through the searches that use it."""

import numpy as np
import pytest
import torch

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
    "readout", [{}, {"readout_size": None, "tie_embeddings": "none"}], ids=["readout", "joined"]
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
        model = make_model(name, dtype=dtype, seed=1, **overrides).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2.5)
            model.output.projection.bias[EOS] += 1.0
        return model

    return make


def searched(model, source, beam_size):
    return search(model, source, LIMITS, beam_size=beam_size, n_best=beam_size, length_penalty=0.6)


@pytest.mark.parametrize("beam_size", [1, 3])
@READOUTS
@pytest.mark.parametrize(
    ("name", "output"),
    [
        *((name, "softmax") for name in VARIANTS),
        *((name, "lexical") for name in ("additive", "scaled_dot", "uniform")),
    ],
)
def test_hypotheses_are_the_plain_steps(make_sharp, source, name, output, readout, beam_size):
    model = make_sharp(name, output={"name": output}, **readout)
    is_known = known_score(model.decoder.attention) is not None
    assert isinstance(step_model(model), FastStep if is_known else PlainSteps)
    expected = searched(PlainSteps(model), source, beam_size)
    found = searched(step_model(model), source, beam_size)
    assert len({len(best[0].ids) for best in expected}) > 1  # sentences leave one after another
    for ours, theirs in zip(found, expected, strict=True):
        assert [one.ids for one in ours] == [one.ids for one in theirs]
        assert [one.is_finished for one in ours] == [one.is_finished for one in theirs]
        assert [one.log_prob for one in ours] == pytest.approx(
            [one.log_prob for one in theirs], abs=1e-5
        )
        for one, other in zip(ours, theirs, strict=True):
            assert (one.weights_TS is None) == (other.weights_TS is None)
            if one.weights_TS is not None:
                np.testing.assert_allclose(one.weights_TS, other.weights_TS, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 3])
@READOUTS
@pytest.mark.parametrize("decoder", ["bahdanau", "conditional"])
@pytest.mark.parametrize(
    "name", ["additive", "dot", "scaled_dot", "slots", "uniform", "fixed", "initial"]
)
def test_steps_and_reordering_in_double_precision(make_model, source, name, decoder, readout, rows):
    model = make_model(name, decoder={"name": decoder}, **readout).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # biases too, which start at 0
            parameter.add_(0.1 * torch.randn_like(parameter))
    plain = PlainSteps(model)
    fast = FastStep(model)
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        states = [m.start(source, rows) for m in (plain, fast)]
        ids = torch.full((6 * rows,), 1)
        for sentences in ([0, 1, 2, 3, 4, 5], [5, 0, 2], [2], [0]):
            (expected, states[0]) = plain.step(ids, states[0])
            (found, states[1]) = fast.step(ids, states[1])
            torch.testing.assert_close(found.log_probs(), expected.log_probs())
            if expected.weights_RS is None:
                assert found.weights_RS is None
            else:
                torch.testing.assert_close(found.weights_RS, expected.weights_RS)
            if max(sentences) >= len(ids) // rows:
                break
            slots = torch.randint(0, rows, (len(sentences), rows), generator=generator)
            index = (torch.tensor(sentences).unsqueeze(1) * rows + slots).flatten()
            states = [plain.reorder(states[0], index), fast.reorder(states[1], index)]
            ids = torch.randint(4, 31, (len(index),), generator=generator)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_an_unknown_combination_takes_the_models_own_step(make_sharp, source, beam_size):
    model = make_sharp(decoder={"name": "luong", "cell": "lstm"})
    assert isinstance(step_model(model), PlainSteps)
    assert len(searched(step_model(model, "bf16"), source, beam_size)) == 6
    with pytest.raises(UsageError, match="precision 'int8'"):
        step_model(model, "int8")


@pytest.mark.parametrize("name", VARIANTS)
def test_a_known_score_takes_the_fast_step_of_the_conditional_decoder_too(make_model, name):
    model = make_model(name, decoder={"name": "conditional"})
    is_known = known_score(model.decoder.attention) is not None
    assert isinstance(step_model(model), FastStep if is_known else PlainSteps)


@pytest.mark.parametrize("num_rows", [1, 32, 33, 70])
@pytest.mark.parametrize("num_candidates", [1, 5])
def test_the_best_tokens_are_those_of_the_normalized_logits(num_rows, num_candidates):
    logits = (
        torch.randn(num_rows, 90, generator=torch.Generator().manual_seed(num_rows)) * 3.0 + 5.0
    )
    expected = torch.log_softmax(logits, dim=-1)
    expected[:, [PAD, BOS, UNK]] = -torch.inf
    tokens = fast_step.FastTokens(logits, torch.clone, None, num_rows=32)
    log_probs, ids = tokens.top(num_candidates, forbidden=(PAD, BOS, UNK))
    top = expected.topk(num_candidates, dim=-1)
    torch.testing.assert_close(log_probs, top.values)
    assert torch.equal(ids, top.indices)
    assert torch.equal(
        tokens.top(num_candidates, forbidden=(PAD, BOS, UNK), stride=3)[1], top.indices[::3]
    )


def test_a_large_vocabulary_goes_without_a_table(monkeypatch, make_sharp, source):
    model = make_sharp()
    expected = searched(FastStep(model), source, 3)
    monkeypatch.setattr(fast_step, "_MAX_TABLE_NUMBERS", 10)
    found = searched(FastStep(model), source, 3)
    assert [[one.ids for one in best] for best in found] == [
        [one.ids for one in best] for best in expected
    ]


@pytest.mark.parametrize(("precision", "largest"), [("bf16", 0.05), ("int8", 0.1)])
@pytest.mark.parametrize("name", ["additive", "dot", "fixed", "scaled_dot"])
def test_fewer_bits_are_close(make_model, source, name, precision, largest):
    model = make_model(name, dtype=torch.float32).eval()
    step = step_model(model, precision)
    ids = torch.full((6,), 1)
    with torch.no_grad():
        expected, found = (
            m.step(ids, m.start(source, 1))[0].log_probs() for m in (PlainSteps(model), step)
        )
    difference = (found - expected).abs().max().item()
    assert 0.0 < difference < largest
    for best in searched(step, source, 3):
        assert all(np.isfinite(one.log_prob) for one in best)
