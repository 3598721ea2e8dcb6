"""A softmax helped by a translation lexicon (Arthur, Neubig, Nakamura 2016, section 3).

    p_lex(w) = sum_j a_j l(w | x_j)
    bias:           p = softmax(W_o features + b_o + log(p_lex + eps))
    interpolation:  p = lambda p_lex + (1 - lambda m) softmax(W_o features + b_o)
    m = sum_w p_lex(w)

a are the attention weights and x_j the source tokens. The lexicon l(w | x) is learned automatically
(section 4): it is the translation table of IBM model 1, estimated from the training pairs
(`text/ibm1.py`). It holds the most probable translations of each source token, normalized; EOS
translates as EOS. m is below 1 if a source token has no entry. The model's softmax then gets the
share of lambda that the attention gives to this token. (The paper's factor is 1 - lambda.) eps is
`epsilon`. lambda = sigma(`share_bias`) is learned.

The lexicon is saved with the weights, so that a run translates without its training data.

Shapes: B rows, N rows with targets, S source positions, K entries of a source token, U and V source
and target vocabulary.
"""

from typing import Annotated, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from seq2seq_attn.config.types import PositiveFloat, Whole
from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide
from seq2seq_attn.model.output.base import ScoredOutput, mixed
from seq2seq_attn.text.ibm1 import TranslationTable
from seq2seq_attn.text.vocab import EOS

NumEntries = Annotated[Whole, Field(ge=1, le=1024)]
Variant = Literal["bias", "interpolation"]


class Entries(NamedTuple):
    """The entries of the lexicon for the tokens of a source batch."""

    ids_BSK: Tensor
    """int64, ids of target tokens"""
    probs_BSK: Tensor
    """l(w | x) of each entry; 0 where there is no entry"""


class Lexicon(ScoredOutput):
    """A softmax of one linear layer, helped by a translation table that is not trained.

    Args:
        num_entries: K, the number of entries of a source token.
        epsilon: eps, which only the variant `bias` uses.
    """

    requires = ("source_attention", "distribution")

    def __init__(
        self,
        *,
        feature_size: int,
        num_ids: int,
        num_source_ids: int,
        variant: Variant = "bias",
        epsilon: PositiveFloat = 0.001,
        num_entries: NumEntries = 32,
    ) -> None:
        super().__init__(feature_size, num_ids)
        self.epsilon = epsilon if variant == "bias" else None
        self.share_bias = nn.Parameter(torch.zeros(1)) if variant == "interpolation" else None
        self.target_ids_UK: Tensor
        self.probs_UK: Tensor
        # The ids are whole numbers in float32, because a file of weights holds floating-point
        # tensors only.
        self.register_buffer("target_ids_UK", torch.zeros(num_source_ids, num_entries))
        self.register_buffer("probs_UK", torch.zeros(num_source_ids, num_entries))

    @torch.no_grad()
    def set_table(self, table: TranslationTable) -> str:
        sources, entries, targets, probs = map(torch.from_numpy, table.best(self.probs_UK.shape[1]))
        probs_UK = torch.zeros_like(self.probs_UK)
        probs_UK[sources, entries] = probs.to(probs_UK)
        num_types = int((probs_UK.sum(dim=1) > 0).sum())
        probs_UK[EOS] = 0.0
        probs_UK[EOS, 0] = 1.0
        self.target_ids_UK[sources, entries] = targets.to(self.target_ids_UK)
        self.target_ids_UK[EOS, 0] = EOS
        self.probs_UK.copy_(functional.normalize(probs_UK, p=1.0, dim=1))
        counts = f"{len(targets):,} translations of {num_types:,} source types"
        return f"lexicon: {counts}, by IBM model 1"

    def prepare(self, encoded: Encoded, source: SourceBatch) -> Entries:
        """Look up the entries of the source tokens."""
        ids_BSK = self.target_ids_UK[source.ids_BS].long().clamp(0, self.num_ids - 1)
        probs_BSK = self.probs_UK[source.ids_BS]
        return Entries(ids_BSK, probs_BSK.masked_fill(~source.mask_BS.unsqueeze(2), 0.0))

    def log_probs(self, step: StepOutput, memory: Memory) -> Tensor:
        if self.epsilon is not None:
            return super().log_probs(step, memory)
        log_model_B1, log_lexicon = self._log_shares(step, memory)
        generated_BV = log_model_B1 + super().log_probs(step, memory)
        return mixed(generated_BV, log_lexicon, self._lexicon(step, memory))

    def score(self, step: StepOutput, memory: Memory, targets_N: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of the target tokens, see `ScoredOutput.score`. With interpolation,
        label smoothing acts on the model's distribution."""
        log_probs_N, means_N = super().score(step, memory, targets_N)
        if self.epsilon is not None:
            return log_probs_N, means_N
        log_model_N1, log_lexicon = self._log_shares(step, memory)
        lexicon_N = self._lexicon(step, memory).gather(1, targets_N.unsqueeze(1)).squeeze(1)
        model_N = log_model_N1.squeeze(1) + log_probs_N
        return mixed(model_N, log_lexicon, lexicon_N), means_N

    def logits(self, step: StepOutput, memory: Memory) -> Tensor:
        """Return the logits, see `ScoredOutput.logits`. With interpolation they do not include the
        lexicon."""
        logits_BV = super().logits(step, memory)
        if self.epsilon is None:
            return logits_BV
        return logits_BV + (self._lexicon(step, memory) + self.epsilon).log()

    def _lexicon(self, step: StepOutput, memory: Memory) -> Tensor:
        """Return p_lex, [B, V]."""
        entries: Entries = memory.output
        probs_BX = (step.weights_BS.unsqueeze(2) * entries.probs_BSK).flatten(1)
        lexicon_BV = probs_BX.new_zeros(probs_BX.shape[0], self.num_ids)
        return lexicon_BV.scatter_add(1, entries.ids_BSK.flatten(1), probs_BX)

    def _log_shares(self, step: StepOutput, memory: Memory) -> tuple[Tensor, Tensor]:
        """Return the logarithm of the model's share, [B, 1], and the logarithm of lambda, [1]."""
        entries: Entries = memory.output
        assert self.share_bias is not None
        share = torch.sigmoid(wide(self.share_bias))
        lexicon_B1 = (step.weights_BS * entries.probs_BSK.sum(dim=2)).sum(dim=1, keepdim=True)
        log_model_B1 = (1.0 - share * lexicon_B1).clamp_min(torch.finfo(share.dtype).tiny).log()
        return log_model_B1, functional.logsigmoid(wide(self.share_bias))
