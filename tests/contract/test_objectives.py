"""The contract of training objectives, asked of every file in the folder: a new one is tested with
no edit here."""

import numpy as np
import pytest
import torch

from seq2seq_attn.config import load_config, packaged_config_names
from seq2seq_attn.data.batch import collate, rounded_up
from seq2seq_attn.model.attention.base import Draw
from seq2seq_attn.model.build import build_model, model_without_weights
from seq2seq_attn.model.decoder.base import Memory
from seq2seq_attn.model.output.base import DecoderOutputs, Output
from seq2seq_attn.text.vocab import PAD
from seq2seq_attn.train.loss import OBJECTIVE, build_objectives
from seq2seq_attn.train.reverse import run_swapped
from tests.contract.chosen import variants
from tests.modules import half_precision

SOURCES = [[5, 6, 7, 8, 9, 10], [11], [], [6, 7, 8]]
TARGETS = [[7, 8], [9, 10, 11, 12], [], [13, 14, 15, 16, 17]]
LINKS = [[(0, 0), (1, 0), (5, 1)], [(0, 3)], [], [(2, 4), (1, 0), (0, 0), (2, 0)]]
NUM_IDS = 19


@pytest.fixture(params=variants(OBJECTIVE))
def name(request):
    return str(request.param)


def configured(name, base, *overrides):
    """With the objective's overlay if it is the package's."""
    overlay = f"objective/{name}"
    if overlay in packaged_config_names():
        return load_config([base, overlay], overrides)
    return load_config([base], [f"train.objectives={{'{name}': {{}}}}", *overrides])


@pytest.fixture
def objective(name):
    config = configured(name, "quickstart")
    model = model_without_weights(config.model, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS)
    [built] = build_objectives(config, model).values()
    return built


def make_batch(rows=range(4)):
    links = [np.array(LINKS[row], dtype=np.int32).reshape(-1, 2) for row in rows]
    batch = collate([SOURCES[row] for row in rows], [TARGETS[row] for row in rows], rows, links)
    return batch.to(torch.get_default_device())


class PredictsWeights(Output):
    """Its predictions are the attention weights; the target tokens have these log-probabilities."""

    def __init__(self, log_probs_N):
        super().__init__(NUM_IDS)
        self.log_probs_N = log_probs_N

    def log_probs(self, step, memory):
        return step.weights_BS.clamp_min(1e-30).log()

    def target_log_probs(self, outputs):
        return self.log_probs_N

    def score(self, step, memory, targets_N):
        raise NotImplementedError


def random_scores(batch, dtype=torch.float64):
    torch.manual_seed(3)
    return torch.randn(*batch.tgt_out_BT.t().shape, batch.source.ids_BS.shape[1], dtype=dtype)


def outputs_of(batch, scores_TBS):
    """Outputs of a decoder whose attention weights are the softmax of these scores."""
    scores_TBS = scores_TBS.masked_fill(~batch.source.mask_BS, -torch.inf)
    return model_outputs(batch, scores_TBS.softmax(dim=-1))


def model_outputs(batch, weights_TBS):
    """Outputs of a decoder with these attention weights, which drew the first source position at
    each step, whose states, contexts and embeddings are the first weight, and whose predictions are
    also the weights, as are the reverse model's weights."""
    first_TB1 = weights_TBS[:, :, :1]
    first_TB = weights_TBS[:, :, 0]
    targets_N = batch.tgt_out_BT.t().flatten()
    return DecoderOutputs(
        first_TB1.flatten(0, 1),
        first_TB1,
        first_TB1,
        first_TB1,
        weights_TBS,
        Memory(None, batch.source.ids_BS, batch.source.extended_ids_BS),
        PredictsWeights(-1.0 - targets_N.to(weights_TBS.dtype) / NUM_IDS),
        batch,
        Draw(first_TB.clamp_min(1e-30).log(), torch.full_like(first_TB, -9.0)),
        reverse_weights_SBT=weights_TBS.permute(2, 1, 0),
    )


def test_a_term_is_finite_and_counts_something(objective):
    batch = make_batch()
    term = objective.term(outputs_of(batch, random_scores(batch)))
    assert term.shape == ()
    assert torch.isfinite(term)
    assert term != 0.0
    assert isinstance(objective.count(batch), int)
    assert objective.count(batch) > 0


def test_padding_never_matters(objective):
    batch = make_batch()
    scores_TBS = random_scores(batch)
    plain = objective.term(outputs_of(batch, scores_TBS))
    rounded = rounded_up(batch, rows=7, positions=11)
    padded = torch.full_like(random_scores(rounded), 7.5)
    num_steps, num_rows, num_positions = scores_TBS.shape
    padded[:num_steps, :num_rows, :num_positions] = scores_TBS
    torch.testing.assert_close(objective.term(outputs_of(rounded, padded)), plain)
    assert objective.count(rounded) == objective.count(batch)
    is_padding_TB1 = (batch.tgt_out_BT == PAD).t().unsqueeze(2)
    other = scores_TBS.masked_fill(is_padding_TB1, 9.5)
    assert torch.equal(objective.term(outputs_of(batch, other)), plain)


def test_rows_add_up(objective):
    batch = make_batch()
    scores_TBS = random_scores(batch)
    together = objective.term(outputs_of(batch, scores_TBS))
    terms = []
    counts = []
    for row in range(4):
        alone = make_batch([row])
        num_steps = alone.tgt_out_BT.shape[1]
        num_positions = alone.source.ids_BS.shape[1]
        scores = scores_TBS[:num_steps, row : row + 1, :num_positions]
        terms.append(objective.term(outputs_of(alone, scores)))
        counts.append(objective.count(alone))
    torch.testing.assert_close(torch.stack(terms).sum(), together)
    assert sum(counts) == objective.count(batch)


def test_gradcheck(objective):
    batch = make_batch()
    scores_TBS = random_scores(batch).requires_grad_()

    def run(scores_TBS):
        return objective.term(outputs_of(batch, scores_TBS))

    assert torch.autograd.gradcheck(run, scores_TBS)


@pytest.mark.parametrize("scale", [1e4, 1e-4])
def test_sharp_and_flat_weights_have_finite_gradients(objective, scale):
    batch = make_batch()
    scores_TBS = (random_scores(batch, torch.float32) * scale).requires_grad_()
    term = objective.term(outputs_of(batch, scores_TBS))
    term.backward()
    assert torch.isfinite(term)
    assert scores_TBS.grad is not None
    assert torch.isfinite(scores_TBS.grad).all()


@pytest.mark.parametrize("is_half", [False, True])
def test_the_attention_of_a_model_learns_from_it(name, objective, is_half):
    sizes = ["model.embedding_size=11", "model.hidden_size=13", "model.encoder.hidden_size=7"]
    dropout = [f"model.dropout.{part}=0" for part in ("embedding", "encoder", "readout")]
    torch.manual_seed(1)
    config = configured(name, "base", *sizes, *dropout).model
    model = build_model(config, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS)
    reverse = build_model(config, num_source_ids=NUM_IDS, num_target_ids=NUM_IDS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    batch = make_batch()
    values = []
    for _ in range(20):
        with half_precision(is_half):
            outputs, _ = run_swapped(reverse, model(batch), batch, label_smoothing=0.0)
            term = objective.term(outputs)
        assert term.dtype == torch.float32
        optimizer.zero_grad()
        (term / objective.count(batch)).backward()
        assert model.decoder.attention.query_projection.weight.grad.abs().sum() > 0
        optimizer.step()
        values.append(term.item())
    assert values[-1] < 0.9995 * values[0]
