"""A `StepModel` without weights: what follows a prefix is drawn from a generator seeded by
(sentence, prefix)."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.search.base import StepModel, TokenScores
from seq2seq_attn.text.vocab import EOS, UNK

Prefix = tuple[int, ...]


class FakeState(NamedTuple):
    sources: list[Prefix]
    """of each row, without EOS"""
    prefixes: list[Prefix]
    """of each row, BOS first once a step was made"""
    num_positions: int
    rows_per_sentence: int


@dataclass
class FakeModel(StepModel[FakeState]):
    """`num_free` tokens after the specials. `ties` draws from very few values; `scripted` overrides
    single prefixes."""

    num_free: int = 2
    seed: int = 0
    has_weights: bool = True
    ties: bool = False
    sharpness: float = 2.0
    eos_bonus: float = 0.0
    scripted: dict[Prefix, dict[int, float]] = field(default_factory=dict)
    steps_of_rows: list[int] = field(default_factory=list)

    copies_source = False

    keeps_positions = True

    @property
    def has_attention(self):
        return self.has_weights

    def next_log_probs(self, source, prefix):
        """[V], of a prefix without BOS."""
        size = UNK + 1 + self.num_free
        if prefix in self.scripted:
            probs = np.full(size, 1e-9)
            for token, prob in self.scripted[prefix].items():
                probs[token] = prob
            return np.log(probs / probs.sum()).astype(np.float32)
        generator = np.random.default_rng([self.seed, 99, *source, 98, *prefix])
        if self.ties:
            logits = generator.integers(0, 2, size).astype(np.float64)
        else:
            logits = self.sharpness * generator.normal(size=size)
        logits[EOS] += self.eos_bonus
        return (logits - np.log(np.exp(logits).sum())).astype(np.float32)

    def log_prob(self, source, ids, *, is_finished=True):
        """The teacher-forced log-probability, token by token."""
        tokens = [*ids, EOS] if is_finished else [*ids]
        total = np.float32(0.0)
        for t, token in enumerate(tokens):
            log_probs = self.next_log_probs(tuple(source), tuple(tokens[:t]))
            total = np.float32(total + log_probs[token])
        return float(total)

    def forced_log_prob(self, source, hypothesis):
        return self.log_prob(source, hypothesis.ids, is_finished=hypothesis.is_finished)

    def weights_of_steps(self, source, ids, num):
        """[num, S], of the first steps of a translation."""
        rows = [self.attention(tuple(source), tuple(ids[:t])) for t in range(num)]
        return np.stack(rows)

    def attention(self, source, prefix):
        """[len(source) + 1], of the step that follows the prefix."""
        generator = np.random.default_rng([self.seed, 7, *source, 98, *prefix])
        return generator.dirichlet(np.ones(len(source) + 1)).astype(np.float32)

    def start(self, source, rows_per_sentence):
        rows = [
            tuple(ids[: n - 1])
            for ids, n in zip(source.ids_BS.tolist(), source.lengths_B.tolist(), strict=True)
        ]
        rows = [row for row in rows for _ in range(rows_per_sentence)]
        return FakeState(rows, [()] * len(rows), source.ids_BS.shape[1], rows_per_sentence)

    def step(self, prev_ids_R, state):
        assert len(prev_ids_R) == len(state.sources)
        self.steps_of_rows.append(len(state.sources))
        prefixes = [(*p, t) for p, t in zip(state.prefixes, prev_ids_R.tolist(), strict=True)]
        rows = [self.next_log_probs(s, p[1:]) for s, p in zip(state.sources, prefixes, strict=True)]
        next_state = state._replace(prefixes=prefixes)
        return TokenScores(torch.from_numpy(np.stack(rows)), self._weights(next_state)), next_state

    def reorder(self, state, index_R):
        index = index_R.tolist()
        sentences = np.array(index).reshape(-1, state.rows_per_sentence) // state.rows_per_sentence
        assert (
            sentences == sentences[:, :1]
        ).all()  # the contract: rows of a sentence stay together
        return state._replace(
            sources=[state.sources[i] for i in index], prefixes=[state.prefixes[i] for i in index]
        )

    def _weights(self, state):
        if not self.has_weights:
            return None
        weights_RS = np.zeros((len(state.sources), state.num_positions), dtype=np.float32)
        for row, (source, prefix) in enumerate(zip(state.sources, state.prefixes, strict=True)):
            weights_RS[row, : len(source) + 1] = self.attention(source, prefix[1:])
        return torch.from_numpy(weights_RS)


def sources(count, seed=0):
    """Source sentences of different lengths, as ids and as a batch."""
    generator = np.random.default_rng(seed)
    ids = [generator.integers(4, 20, generator.integers(1, 7)).tolist() for _ in range(count)]
    return ids, collate_source(ids)
