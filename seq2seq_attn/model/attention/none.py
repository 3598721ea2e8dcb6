"""No attention, one fixed vector: the decoder sees the encoder's summary at every step and in the readout.

    c = [h->_last ; h<-_first]

(Cho et al. 2014, section 2.2 and appendix A.1.2: the summary c enters every step and the output.) This is the strong
fixed-vector baseline. The values are taken to be [forward ; backward] states side by side, as `bigru` makes them; of an
encoder that reads backward only, `forward_size` is 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seq2seq_attn.config import NonNegativeInt
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.attention.base import Attention, FixedContext, Memory, State, start_memory, zero_padding


class NoAttention(Attention):
    """A memory of one position, the summary; its weight is always 1.

    Args:
        forward_size: how many of a value's numbers are the forward state's.
    """

    is_positional = False

    def __init__(self, memory_size: int, forward_size: int) -> None:
        super().__init__(memory_size)
        self.forward_size = forward_size

    def prepare(self, values_BSM: Tensor, mask_BS: Tensor) -> tuple[Memory, State]:
        """Keep the forward state of the last real position and the backward state of the first."""
        values_BSM = zero_padding(values_BSM, mask_BS)
        split = self.forward_size
        last_B = mask_BS.sum(dim=1) - 1
        rows_B = torch.arange(len(last_B), device=last_B.device)
        summary_BM = torch.cat([values_BSM[rows_B, last_B, :split], values_BSM[:, 0, split:]], dim=-1)
        return start_memory(summary_BM.unsqueeze(1), mask_BS[:, :1])

    def score(self, query_BH: Tensor, memory: Memory, state: State) -> Tensor:
        """0 for the one position."""
        return query_BH.new_zeros(memory.mask_BS.shape)

    def fast_score(self) -> FixedContext:
        """The context is the same at every step."""
        return FixedContext()


def build(*, query_size: int, memory_size: int, forward_size: NonNegativeInt | None = None) -> NoAttention:
    """`forward_size` defaults to half the memory size. Raises UsageError where it is more than all of it."""
    if forward_size is not None and forward_size > memory_size:
        raise UsageError(
            f"model.attention.options.forward_size={forward_size}: expected at most {memory_size}, the encoder's size"
        )
    return NoAttention(memory_size, memory_size // 2 if forward_size is None else forward_size)
