"""Search with a shortlist of target tokens."""

import numpy as np
import pytest
import torch

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import build_model
from seq2seq_attn.search.steps import NUM_FREQUENT, shortlist, step_model
from seq2seq_attn.text.vocab import BOS, SPECIALS
from tests.search.searching import search

NUM_IDS = 700
BATCH = collate_source([[5, 9, 30], [8], [], [9, 9, 31, 7]])
CANDIDATES = torch.randint(
    4, NUM_IDS, (40, 3), generator=torch.Generator().manual_seed(1), dtype=torch.int32
)


@pytest.fixture(scope="module", params=["softmax", "lexicon"])
def steps(request: pytest.FixtureRequest):
    """Of a model with a fast step, and of one without."""
    torch.manual_seed(1)
    config = ModelConfig(
        embedding_size=8, hidden_size=16, encoder={"hidden_size": 8}, output={"name": request.param}
    )
    model = build_model(config, num_source_ids=40, num_target_ids=NUM_IDS).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4.0)
    return step_model(model)


def run(model, **options):
    return [best for best, *_ in search(model, BATCH, [6] * 4, **options)]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_list_of_all_tokens_changes_nothing(steps, beam_size):
    everything = torch.arange(NUM_IDS).expand(40, -1)
    listed = shortlist(steps, everything, BATCH, [], num_target_ids=NUM_IDS)
    for ours, theirs in zip(
        run(listed, beam_size=beam_size), run(steps, beam_size=beam_size), strict=True
    ):
        assert ours.ids == theirs.ids
        assert ours.log_prob == pytest.approx(theirs.log_prob, abs=1e-4)
        np.testing.assert_allclose(ours.weights_TS, theirs.weights_TS, atol=1e-5)


def test_the_listed_tokens_share_the_probability(steps):
    listed = shortlist(steps, CANDIDATES, BATCH, [[650]], num_target_ids=NUM_IDS)
    previous = torch.full((4,), BOS)
    with torch.no_grad():
        tokens, _ = listed.step(previous, listed.start(BATCH, 1))
        all_tokens, _ = steps.step(previous, steps.start(BATCH, 1))
        log_probs, expected = tokens.log_probs(), all_tokens.log_probs()
    least = {
        *range(len(SPECIALS) + NUM_FREQUENT),
        650,
        *CANDIDATES[BATCH.ids_BS].flatten().tolist(),
    }
    kept = (log_probs[0] > -torch.inf).nonzero().flatten()
    assert log_probs.shape == (4, NUM_IDS)
    assert least <= {*kept.tolist()}
    assert len(kept) == -(-len(least) // 64) * 64
    torch.testing.assert_close(
        log_probs[:, kept], expected[:, kept].log_softmax(dim=1), atol=1e-5, rtol=1e-5
    )
    best, ids = tokens.top(100, forbidden=[0, 1])
    torch.testing.assert_close(
        best, log_probs.index_fill(1, torch.tensor([0, 1]), -torch.inf).topk(100).values
    )
    assert torch.equal(log_probs.gather(1, ids), best)


def test_a_prefix_is_listed_and_required_words_are_refused(steps):
    prefixes = [[650, 651]] * 4
    listed = shortlist(steps, CANDIDATES, BATCH, prefixes, num_target_ids=NUM_IDS)
    assert all(best.ids[:2] == [650, 651] for best in run(listed, prefixes=prefixes))
    with pytest.raises(UsageError, match="shortlist"):
        run(listed, method="required", shortlist=1)
