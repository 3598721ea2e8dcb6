"""`log_prob` is the model's log-probability, whatever ranks hypotheses: every packaged method, and
methods of one's own, against forced decoding."""

import pytest
import torch

from seq2seq_attn.config import SearchConfig
from seq2seq_attn.model.variants import SEARCH, packaged_variants
from seq2seq_attn.search.base import SearchSource
from seq2seq_attn.search.beam import Candidates, rank_candidates, search_beams
from seq2seq_attn.search.greedy import search_rows
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import search
from tests.search.test_scorers import LANGUAGE, Other

MODEL = FakeModel(num_free=2, seed=4, sharpness=1.5, eos_bonus=0.5)


def stochastic_beam(model, source, options):
    """A beam search whose scores have random numbers added (after Kool et al. 2019)."""
    generator = torch.Generator().manual_seed(1)

    def choose(beam, ranked):
        scores_RV = ranked.scores()
        noise_RV = torch.rand(scores_RV.shape, generator=generator)
        scores_RJ, ids_RJ = (scores_RV - 3 * noise_RV).topk(options.beam_size, dim=1)
        order_BC = rank_candidates(beam, scores_RJ)
        return Candidates(ids_RJ, scores_RJ, order_BC[:, : options.beam_size])

    return search_beams(model, source, options, choose, num_slots=options.beam_size)


def constant_rows(model, source, options):
    """One hypothesis per sentence, whose tokens all score 0."""

    def choose(ranked, sentences_R, length):
        _, ids_R1 = ranked.top(1)
        return torch.zeros(ids_R1.shape), ids_R1

    return search_rows(model, source, options, choose)


def assert_forced(ids, found):
    for source, hypotheses in zip(ids, found, strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            expected = MODEL.forced_log_prob(source, hypothesis)
            assert hypothesis.log_prob == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("scorers", [[], [Other(LANGUAGE, 0.8)]], ids=["plain", "scorer"])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("method", packaged_variants(SEARCH))
def test_packaged_methods(method, scorers, length_penalty):
    ids, batch = sources(6, 4)
    options = {"method": method, "beam_size": 4, "length_penalty": length_penalty}
    if method != "greedy":
        options["n_best"] = 3
    if method == "sample":
        options |= {"temperature": 0.3, "top_k": 3}
    assert_forced(ids, search(MODEL, batch, [8] * 6, scorers=scorers, **options))


@pytest.mark.parametrize("method", [stochastic_beam, constant_rows])
def test_methods_whose_scores_are_not_the_model_s(method):
    ids, batch = sources(6, 4)
    found = method(MODEL, SearchSource(batch, [8] * 6), SearchConfig(beam_size=4))
    assert_forced(ids, found)
    assert all(best.log_prob != pytest.approx(best.score, abs=0.01) for [best, *_] in found)
