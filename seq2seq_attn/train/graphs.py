"""Forward and backward passes as CUDA graphs, captured once per batch shape and then replayed by
one call.

A recurrent step is a dozen small kernels, each of which ends before the CPU has launched the next.
A graph launches all kernels of a pass at once. Its shapes and addresses are fixed, so batches are
padded to few shapes (`data.batch.rounded_up`) and copied to the graph's inputs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.config import Config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.seq2seq import Seq2Seq

ROWS = 16
POSITIONS = 4
"""batches are padded to multiples of these numbers of pairs and tokens"""
MAX_GRAPHS = 256
"""Each graph keeps a pass's tensors. Beyond this limit, and on a shape's first occurrence, a pass
runs eagerly."""

Pass = Callable[[Batch, Tensor, float], Tensor]
"""(batch, number of target tokens of the update as a 0-d tensor, teacher forcing ratio) -> [loss
sum, nll sum] in float64; adds to the gradients"""


def check_graphs(config: Config, model: Seq2Seq) -> None:
    """Raises UsageError if CUDA graphs are asked for with a setting whose pass they cannot
    replay."""
    layout = config.data.layout
    refused = {
        "train.precision=fp16": config.train.precision == "fp16",
        "train.objectives": bool(config.train.objectives),
        "several sources, or one of vectors": (
            len(layout.languages) > 1 or layout.vector_column is not None
        ),
        f"model.attention.name={config.model.attention.name}": (
            model.decoder.attention.reads_numbers
        ),
    }
    for setting, is_set in refused.items():
        if config.train.cuda_graphs and is_set:
            raise UsageError(
                f"train.cuda_graphs=true: not supported with {setting}; set train.cuda_graphs=false"
            )


class Recorded(NamedTuple):
    """A pass, and the tensors that it reads and writes."""

    replay: Callable[[], None]
    batch: Batch
    num_tokens: Tensor
    sums: Tensor


class GraphedPass:
    """A `Pass` that replays graphs. Between calls, gradients may be zeroed but must stay in
    place."""

    def __init__(self, run: Pass, device: torch.device) -> None:
        self._run = run
        self._device = device
        self._seen: set[tuple[Any, ...]] = set()
        self.recorded: dict[tuple[Any, ...], Recorded] = {}
        self._pool: Any = None

    def __call__(self, batch: Batch, num_tokens: int, ratio: float) -> Tensor:
        """Run the pass on the device, for a batch whose tensors are on the CPU. The result is
        overwritten by the next call."""
        key = (*batch.source.ids_BS.shape, batch.tgt_out_BT.shape[1], ratio)
        if key not in self.recorded:
            is_first = key not in self._seen
            if is_first or len(self.recorded) >= MAX_GRAPHS:
                # Only shapes that recur are captured. The first run also makes allocations that a
                # capture must not make.
                self._seen.add(key)
                tokens = torch.tensor(float(num_tokens), device=self._device)
                return self._run(batch.to(self._device), tokens, ratio)
            self.recorded[key] = self.record(batch.to(self._device), ratio)
        recorded = self.recorded[key]
        tensors = zip(_device_tensors(batch), _device_tensors(recorded.batch), strict=True)
        for tensor, recorded_tensor in tensors:
            recorded_tensor.copy_(tensor, non_blocking=True)
        recorded.num_tokens.fill_(num_tokens)
        recorded.replay()
        return recorded.sums

    def record(self, batch: Batch, ratio: float) -> Recorded:
        """Record a pass over a batch of this shape, which lies on the device."""
        num_tokens = torch.ones((), device=self._device)
        graph = torch.cuda.CUDAGraph()
        # "thread_local", because the thread that builds batches keeps pinning memory.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            sums = self._run(batch, num_tokens, ratio)
        self._pool = graph.pool()  # one pass runs at a time, so all share their memory
        return Recorded(graph.replay, batch, num_tokens, sums)


def _device_tensors(batch: Batch) -> tuple[Tensor, ...]:
    return (
        batch.source.ids_BS,
        batch.source.extended_ids_BS,
        batch.tgt_in_BT,
        batch.tgt_out_BT,
        batch.tgt_extended_BT,
    )
