"""No attention, first state only: the decoder sees the source through the state it starts from, and never again.

(Sutskever, Vinyals, Le 2014, section 2.) The context has size 0, so nothing of the source enters a step or the readout.
"""

from __future__ import annotations

from torch import Tensor

from seq2seq_attn.model.attention.base import Attention, FixedContext, Memory, State, start_memory


class InitialOnly(Attention):
    """A memory of one position that holds nothing."""

    is_positional = False

    def prepare(self, values_BSM: Tensor, mask_BS: Tensor) -> tuple[Memory, State]:
        """Values of size 0."""
        return start_memory(values_BSM[:, :1, :0], mask_BS[:, :1])

    def score(self, query_BH: Tensor, memory: Memory, state: State) -> Tensor:
        """0 for the one position."""
        return query_BH.new_zeros(memory.mask_BS.shape)

    def fast_score(self) -> FixedContext:
        """The context is the same (empty) at every step."""
        return FixedContext()


def build(*, query_size: int, memory_size: int) -> InitialOnly:
    """No options; the context's size is 0 whatever the encoder gives."""
    return InitialOnly(memory_size=0)
