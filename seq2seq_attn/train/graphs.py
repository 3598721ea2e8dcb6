"""Forward and backward passes as CUDA graphs. A pass is captured once per batch shape and then
replayed by one call.

A recurrent step consists of a dozen small kernels. Each kernel ends before the CPU has launched the
next kernel. A graph launches all kernels of a pass at once. The shapes and addresses of a graph are
fixed. So batches are padded to few shapes (`data.batch.rounded_up`) and copied to the input tensors
of the graph.
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
"""Batches are padded to a multiple of ROWS pairs and to a multiple of POSITIONS tokens."""
MAX_GRAPHS = 256
"""Maximum number of graphs, which is limited because each graph keeps the tensors of a pass. If the
limit is reached, passes of new shapes run without a graph."""

Pass = Callable[[Batch, Tensor, float], Tensor]
"""A function that maps (batch, number of target tokens of the update as a 0-d tensor, teacher
forcing ratio) to the tensor [loss sum, nll sum] in float64. It adds to the gradients."""


def check_graphs(config: Config, model: Seq2Seq) -> None:
    """Check that CUDA graphs can replay the passes of the configured model, if `train.cuda_graphs`
    is set.

    Raises:
        UsageError: a setting does not work with CUDA graphs.
    """
    if not config.train.cuda_graphs:
        return
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
        if is_set:
            raise UsageError(
                f"train.cuda_graphs=true: not supported with {setting}; set train.cuda_graphs=false"
            )


class Recorded(NamedTuple):
    """A recorded pass, with the tensors that the pass reads (`batch`, `num_tokens`) and writes
    (`sums`)."""

    replay: Callable[[], None]
    batch: Batch
    num_tokens: Tensor
    sums: Tensor


class GraphedPass:
    """Runs a `Pass`: the first time that a batch shape occurs, without a graph; the second time, it
    records a graph; then it replays the graph.

    Between calls, gradients may be set to zero but must keep their memory.
    """

    def __init__(self, run: Pass, device: torch.device) -> None:
        self._run = run
        self._device = device
        self._seen: set[tuple[Any, ...]] = set()
        self.recorded: dict[tuple[Any, ...], Recorded] = {}
        self._pool: Any = None

    def __call__(self, batch: Batch, num_tokens: int, ratio: float) -> Tensor:
        """Run the pass on the device. The tensors of `batch` are on the CPU. The next call
        overwrites the returned tensor."""
        # The shapes and Python numbers of a graph are fixed, so each teacher forcing ratio needs a
        # graph, too. The number of target tokens may change, because the pass reads it from a
        # tensor.
        key = (*batch.source.ids_BS.shape, batch.tgt_out_BT.shape[1], ratio)
        if key not in self.recorded:
            is_first = key not in self._seen
            if is_first or len(self.recorded) >= MAX_GRAPHS:
                # Only shapes that recur are captured. The first eager run also makes allocations
                # that are not allowed during a capture.
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
        """Record a pass for the shape of a batch whose tensors are on the device."""
        num_tokens = torch.ones((), device=self._device)
        graph = torch.cuda.CUDAGraph()
        # "thread_local" lets the thread that builds batches pin memory during the capture.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            sums = self._run(batch, num_tokens, ratio)
        self._pool = graph.pool()  # graphs share memory: only one runs at a time
        return Recorded(graph.replay, batch, num_tokens, sums)


def _device_tensors(batch: Batch) -> tuple[Tensor, ...]:
    return (
        batch.source.ids_BS,
        batch.source.extended_ids_BS,
        batch.tgt_in_BT,
        batch.tgt_out_BT,
        batch.tgt_extended_BT,
    )
