"""Scorers change what ranks, shallow fusion among them; hypotheses keep the model's
log-probability."""

import numpy as np
import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.errors import UsageError
from seq2seq_attn.search.base import Scorer
from seq2seq_attn.search.scorers.fusion import Fusion
from seq2seq_attn.text.vocab import UNK
from tests.search.fake_model import FakeModel, sources
from tests.search.searching import A, best_of_all, search
from tests.toy_run import SOURCE, make_toy_run, toy_config


class Other(Scorer):
    """log p + weight * log q, for another model q of the target alone. Its state holds the tokens
    so far."""

    def __init__(self, model, weight):
        self.model = model
        self.weight = weight

    def start(self, source, rows_per_sentence):
        num_rows = len(source.max_lengths_B) * rows_per_sentence
        return (torch.zeros(num_rows, 0, dtype=torch.int64),)

    def rescore(self, scores_RV, tokens_RT, state):
        [prefixes_RT] = state
        assert torch.equal(prefixes_RT, tokens_RT[:, : prefixes_RT.shape[1]])  # moved with the beam
        rows = [self.model.next_log_probs((), tuple(row)) for row in tokens_RT.tolist()]
        return scores_RV + self.weight * torch.from_numpy(np.stack(rows)), (tokens_RT,)


MODEL = FakeModel(
    num_free=2,
    seed=2,
    sharpness=1.0,
    eos_bonus=0.5,
)
LANGUAGE = FakeModel(
    num_free=2,
    seed=11,
    sharpness=2.0,
)


class Watching(Other):
    """Adds up the attention weights of each row."""

    seen = ()

    def read_weights(self, weights_RS, state):
        self.seen = (*self.seen, weights_RS)
        return state


def test_a_scorer_reads_the_attention_weights_of_each_step():
    scorer = Watching(LANGUAGE, 0.5)
    _, batch = sources(2, 2)
    search(MODEL, batch, [3, 3], method="beam", beam_size=2, scorers=[scorer])
    assert scorer.seen[0].shape == (4, batch.ids_BS.shape[1])


@pytest.mark.parametrize(
    "stack",
    [
        [Other(LANGUAGE, 0.8)],
        [Other(LANGUAGE, 0.3), Other(LANGUAGE, 0.5)],
        [Fusion(LANGUAGE, [], UNK + 3, weight=0.8)],
    ],
    ids=["one", "two", "fusion"],
)
@pytest.mark.parametrize(
    "options",
    [
        {"method": "beam"},
        {"method": "diverse", "num_groups": 1},
        {"method": "required"},
    ],
)
def test_a_beam_wide_enough_finds_the_highest_total(stack, options):
    ids, batch = sources(5, 2)
    options = {
        "beam_size": 64,
        "length_penalty": 0.5,
        **options,
    }
    found = search(MODEL, batch, [4] * 5, scorers=stack, **options)
    plain = search(MODEL, batch, [4] * 5, **options)

    def score(source, candidate):
        total = MODEL.log_prob(source, candidate) + 0.8 * LANGUAGE.log_prob([], candidate)
        return total / (len(candidate) + 1) ** 0.5

    for source, [best] in zip(ids, found, strict=True):
        expected, total = best_of_all(score, source, 4)[0]
        assert (best.ids, best.score) == (expected, pytest.approx(total, rel=1e-4))
        assert best.log_prob == pytest.approx(MODEL.log_prob(source, best.ids), rel=1e-4)
    assert [best.ids for [best] in found] != [best.ids for [best] in plain]


class OnlyA(Scorer):
    def rescore(self, scores_RV, tokens_RT, state):
        excluded = torch.full_like(scores_RV, -torch.inf)
        excluded[:, A] = -1.0
        return excluded, None


@pytest.mark.parametrize("method", ["greedy", "sample"])
def test_greedy_search_and_samples_follow_the_scores(method):
    ids, batch = sources(4, 4)
    found = search(MODEL, batch, [3] * 4, scorers=[OnlyA()], method=method)
    for source, [best] in zip(ids, found, strict=True):
        assert (best.ids, best.score) == ([A, A, A], -3.0)
        assert best.log_prob == pytest.approx(MODEL.forced_log_prob(source, best), rel=1e-5)


def test_runs_are_fused_by_name(tmp_path):
    make_toy_run(tmp_path / "run", toy_config(tokenizer="spacy"), seed=4)
    make_toy_run(tmp_path / "lm", toy_config(tokenizer="spacy", attention="fixed"), seed=5)
    make_toy_run(tmp_path / "subwords")
    copying = toy_config(tokenizer="spacy")
    copying.model.output.name = "copy"
    make_toy_run(tmp_path / "copying", copying, seed=5)
    translator = load(tmp_path / "run", "cpu")

    def fused(run, weight):
        scorers = {
            "fusion": {
                "run": str(tmp_path / run),
                "weight": weight,
                "source": SOURCE[0],
            }
        }
        return [one.tokens for one in translator.translate(SOURCE, scorers=scorers)]

    plain = [one.tokens for one in translator.translate(SOURCE)]
    assert fused("lm", 0.0) == plain != fused("lm", 0.5)
    assert fused("copying", 0.0) == plain != fused("copying", 0.5)
    with pytest.raises(UsageError, match="subwords"):
        fused("subwords", 0.5)
    with pytest.raises(UsageError, match="source"):
        translator.translate(SOURCE, scorers={"fusion": {"run": str(tmp_path / "lm")}})
    with pytest.raises(UsageError, match=r"search\.scorers\.fusion\.wieght"):
        translator.translate(SOURCE, scorers={"fusion": {"run": "x", "wieght": 1}})
