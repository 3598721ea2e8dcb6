"""Forward and backward passes as CUDA graphs: recorded once for a shape of batches, then replayed by one call.

A recurrent step is a dozen small kernels, and a GPU is done with each before the CPU has launched the next. A graph
launches all of a pass at once. Its shapes and addresses are fixed: batches are rounded up to few shapes
(`data.batch.rounded_up`) and copied to where the graph reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from seq2seq_attn.data.batch import Batch

ROWS, POSITIONS = 16, 4
"""batches are rounded up to multiples of these, pairs and tokens"""
MAX_GRAPHS = 256
"""each keeps a pass's tensors; beyond, and at the first sight of a shape, a pass is run as it is"""

Pass = Callable[[Batch, Tensor, float], Tensor]
"""(batch, number of target tokens of the update as a 0-d tensor, teacher forcing ratio) -> [loss sum, nll sum] in
float64; adds to the gradients"""


class Recorded(NamedTuple):
    """A pass, and the tensors that it reads and writes."""

    replay: Callable[[], None]
    batch: Batch
    num_tokens: Tensor
    sums: Tensor


class GraphedPass:
    """A `Pass` that replays graphs. Between calls, gradients may be zeroed but must stay in place."""

    def __init__(self, run: Pass, device: torch.device, *, max_graphs: int = MAX_GRAPHS) -> None:
        self._max_graphs = max_graphs
        self._run = run
        self._device = device
        self._seen: set[tuple[Any, ...]] = set()
        self._recorded: dict[tuple[Any, ...], Recorded] = {}
        self._pool: Any = None

    def __call__(self, batch: Batch, num_tokens: int, ratio: float) -> Tensor:
        """As the pass itself; `batch` lies on the CPU. The result is overwritten by the next call."""
        key = (*batch.source.ids_BS.shape, batch.tgt_out_BT.shape[1], ratio)
        found = self._recorded.get(key)
        if found is None and (key not in self._seen or len(self._recorded) >= self._max_graphs):
            # graphs are for what comes again; the first run also lets libraries allocate what a recording must not
            self._seen.add(key)
            return self._run(batch.to(self._device), torch.tensor(float(num_tokens), device=self._device), ratio)
        if found is None:
            found = self._recorded[key] = self.record(batch.to(self._device), ratio)
        _copy(batch, found.batch)
        found.num_tokens.fill_(num_tokens)
        found.replay()
        return found.sums

    @property
    def num_graphs(self) -> int:
        """Passes recorded so far."""
        return len(self._recorded)

    def record(self, batch: Batch, ratio: float) -> Recorded:
        """Record a pass over a batch of this shape, which lies on the device."""
        num_tokens = torch.ones((), device=self._device)
        with self._recording() as graph:
            sums = self._run(batch, num_tokens, ratio)
        return Recorded(graph.replay, batch, num_tokens, sums)

    @contextmanager
    def _recording(self) -> Iterator[torch.cuda.CUDAGraph]:
        graph = torch.cuda.CUDAGraph()
        # "thread_local": the thread that builds batches ahead goes on pinning memory
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            yield graph
        self._pool = graph.pool()  # one pass runs at a time, so all share their memory


def _copy(batch: Batch, to: Batch) -> None:
    for source, target in zip(_device_tensors(batch), _device_tensors(to), strict=True):
        target.copy_(source, non_blocking=True)


def _device_tensors(batch: Batch) -> tuple[Tensor, ...]:
    of_source = (batch.source.ids_BS, batch.source.surface_ids_BS)
    return *of_source, batch.tgt_in_BT, batch.tgt_out_BT, batch.tgt_surface_BT, batch.positions_N, batch.targets_N
