"""Minimum risk training: minimize the expected cost of translations sampled from the model (Shen et al. 2016, "Minimum
risk training for neural machine translation", section 3).

    R = sum_{y in S(x)} Q(y | x) Delta(y, y*)        Q(y | x) = P(y | x)^alpha / sum_{y' in S(x)} P(y' | x)^alpha

S(x) holds the reference y* and `num_samples` translations drawn from the model, without duplicates. Delta is 1 - GLEU
(`metrics/gleu.py`) of the model's own tokens; the paper's is 1 - sentence BLEU of words. alpha is `sharpness`. The mean
is over sentence pairs.

The paper trains a finished model on R alone. Here R is added to the cross-entropy, as in Wu et al. 2016. Use it for a
second stage (`train.start_from`), as it learns from the model's own translations. It is slow: each update draws
`num_samples` translations of each source, and makes a pass over all of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seq2seq_attn.config import PositiveInt
from seq2seq_attn.config.types import PositiveFloat
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.metrics.gleu import gleu
from seq2seq_attn.model.output.base import Outputs
from seq2seq_attn.text.vocab import EOS, PAD
from seq2seq_attn.train.objectives.base import Objective


class MinimumRisk(Objective):
    """The expected cost of the model's own translations.

    Args:
        sharpness: alpha; the smaller, the flatter Q.
        num_samples: translations drawn of each source.
    """

    needs_weights = False
    needs_log_probs = True

    def __init__(self, sharpness: float, num_samples: int) -> None:
        self._sharpness = sharpness
        self.num_samples = num_samples

    def count(self, batch: Batch) -> int:
        """Sentence pairs."""
        return int((batch.tgt_out_BT[:, 0] != PAD).sum())

    def term(self, outputs: Outputs, batch: Batch) -> Tensor:
        """See `Objective.term`. Every reference is followed by its samples."""
        if outputs.target_log_probs_N is None:
            raise ValueError("minimum_risk: outputs without log-probabilities of the target tokens")
        log_probs_N = outputs.target_log_probs_N.masked_fill(outputs.targets_N == PAD, 0.0)
        num_rows = len(batch.tgt_out_BT)
        log_probs_R = log_probs_N.new_zeros(num_rows).index_add(0, outputs.positions_N % num_rows, log_probs_N)
        group = 1 + self.num_samples
        translations = [tuple(row[: row.index(EOS)]) for row in batch.tgt_out_BT.tolist() if EOS in row]
        groups = [translations[start : start + group] for start in range(0, len(translations), group)]
        is_first = [[translation not in of_pair[:n] for n, translation in enumerate(of_pair)] for of_pair in groups]
        costs = [[1.0 - gleu(translation, of_pair[0]) for translation in of_pair] for of_pair in groups]
        scores_PG = self._sharpness * log_probs_R[: len(translations)].view(-1, group)
        scores_PG = scores_PG.masked_fill(~torch.tensor(is_first, device=scores_PG.device), -torch.inf)
        return (scores_PG.softmax(dim=1) * scores_PG.new_tensor(costs)).sum()


def build(*, sharpness: PositiveFloat = 0.005, num_samples: PositiveInt = 8) -> MinimumRisk:
    """`sharpness` as in the paper, whose `num_samples` is 100."""
    return MinimumRisk(sharpness, num_samples)
