"""Data-parallel training in several processes, which `torchrun` starts.

Every process ("rank") has the whole model and a share of the pairs of each batch. Gradients are
sums over target tokens, divided by the number of target tokens of all ranks. So an update without
dropout equals the update of a single process with the whole batch, except for rounding. The ranks
share a prepared corpus and a run directory. Only the first rank writes to the run directory.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed
from torch import nn

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.runtime.device import resolve_device

T = TypeVar("T")
TIMEOUT = timedelta(hours=12)
"""The timeout is long, because the first rank may prepare a large corpus while the other ranks
wait."""


@dataclass(frozen=True)
class Group:
    """The processes of a training run, as seen by one rank. All ranks must call the methods that
    exchange values: `in_turn`, `broadcast`, `gather`, `sum`, `elementwise_max` and `sum_gradients`.
    In a group of one process, nothing is exchanged."""

    rank: int = 0
    size: int = 1
    launcher: int | None = None
    """process id of `torchrun`; None without `torchrun`"""

    @property
    def is_first(self) -> bool:
        """Whether this rank is the first rank, which writes files and messages."""
        return self.rank == 0

    @property
    def is_orphaned(self) -> bool:
        """Whether the process `torchrun` has ended, so that it can no longer stop the ranks."""
        return self.launcher is not None and os.getppid() != self.launcher

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """Return this rank's share of the items: every `size`-th item."""
        return items[self.rank :: self.size]

    def interleave(self, shares: Sequence[Sequence[T]]) -> list[T]:
        """Merge the shares of all ranks into a list in the order of the items before `share`."""
        interleaved: list[T | None] = [None] * sum(map(len, shares))
        for rank, share in enumerate(shares):
            interleaved[rank :: self.size] = share
        return interleaved  # type: ignore[return-value]

    @contextmanager
    def in_turn(self) -> Iterator[None]:
        """Run the block on the first rank, then on all further ranks, which can read files that the
        first rank has written. No rank continues before all ranks have left the block.

        Raises:
            SystemExit: on further ranks, if the block raised a `UserError` or `OSError` on the
                first rank. The exit code is that of the error, which only the first rank prints.
        """
        if self.is_first:
            try:
                yield
            except (UserError, OSError) as error:
                # an OSError has no exit code
                self.broadcast(getattr(error, "exit_code", UserError.exit_code))
                raise
        # The first rank sends None here, because its block has ended without an error.
        exit_code = self.broadcast(None)
        if exit_code is not None:
            raise SystemExit(exit_code)
        if not self.is_first:
            yield
        self.gather(None)  # waits for all ranks

    def broadcast(self, value: T) -> T:
        """Return the value of the first rank, on all ranks. The values of further ranks are
        ignored."""
        if self.size == 1:
            return value
        values = [value]
        torch.distributed.broadcast_object_list(values, src=0)
        return values[0]

    def gather(self, value: T) -> list[T]:
        """Wait for all ranks, and return their values in the order of ranks."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(values, value)
        return values

    def sum(self, values: Sequence[float]) -> list[float]:
        """Return the elementwise sum over ranks, in float64."""
        return self._reduce(values, torch.distributed.ReduceOp.SUM)

    def elementwise_max(self, values: Sequence[float]) -> list[float]:
        """Return the elementwise maximum over ranks, in float64."""
        return self._reduce(values, torch.distributed.ReduceOp.MAX)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its sum over ranks, in one exchange. A missing gradient counts
        as zeros."""
        if self.size == 1:
            return
        gradients = []
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        torch.distributed.all_reduce(flat)
        sums = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, total in zip(gradients, sums, strict=True):
            gradient.copy_(total.view_as(gradient))

    def _reduce(self, values: Sequence[float], operation: Any) -> list[float]:
        """Combine each value with the values of the other ranks by an operation."""
        if self.size == 1 or not values:
            return list(values)
        reduced = torch.tensor(values, dtype=torch.float64)
        torch.distributed.all_reduce(reduced, operation)
        return reduced.tolist()


ALONE = Group()


@contextmanager
def join_group() -> Iterator[Group]:
    """Yield the group of processes that `torchrun` started, or a group of this process alone. All
    ranks except the first log only errors inside the block.

    Raises:
        UsageError: the environment variables of `torchrun` are incomplete or not valid.
        UserError: another process has ended inside the block.
    """
    size = os.environ.get("WORLD_SIZE", "1")
    if size == "1":
        yield ALONE
        return
    is_from_torchrun = "TORCHELASTIC_RUN_ID" in os.environ
    launcher = os.getppid() if is_from_torchrun else None
    # nccl exchanges gradients on GPUs; gloo exchanges numbers and Python objects.
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    try:
        torch.distributed.init_process_group(backend, timeout=TIMEOUT)
    except ValueError as error:
        raise UsageError(
            f"WORLD_SIZE={size!r}: {error}; start with torchrun, or unset WORLD_SIZE"
        ) from None
    group = Group(torch.distributed.get_rank(), int(size), launcher)
    package_log = logging.getLogger("seq2seq_attn")
    former = package_log.level
    if not group.is_first:
        package_log.setLevel(logging.ERROR)
    try:
        yield group
    except RuntimeError as error:
        # gloo reports a process that has ended by a plain RuntimeError
        if not isinstance(error, torch.distributed.DistError) and "gloo" not in str(error):
            raise
        raise UserError(
            "another process of this training has ended; its own output says why"
        ) from None
    finally:
        package_log.setLevel(former)
        torch.distributed.destroy_process_group()


def local_device(name: str) -> torch.device:
    """Return the device of this rank. If a machine runs several ranks, each rank has a GPU for
    itself.

    Args:
        name: the setting `train.device`.

    Raises:
        UsageError: the device does not exist, there are more ranks than GPUs, or the setting names
            a single GPU for several ranks.
    """
    device = resolve_device(name)
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if device.type != "cuda" or ranks_here == 1:
        return device
    num_gpus = torch.cuda.device_count()
    if device.index is not None or ranks_here > num_gpus:
        raise UsageError(
            f"device {name!r} for {ranks_here} processes and {num_gpus} usable CUDA GPUs: each "
            "process needs its own; start fewer with --nproc-per-node and keep the device at auto, "
            "or use cpu"
        )
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device
