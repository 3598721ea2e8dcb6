"""Several processes, one training: what they must agree on. `torchrun` starts them; alone, everything here is trivial.

Every process ("rank") has the whole model and learns from its share of each batch's pairs. Gradients are sums over
target tokens, divided by those of all ranks, so the update is the one that a single process would make of the whole
batch. The ranks read one prepared corpus and one run directory; the first of them writes.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed
from torch import Tensor, nn

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.runtime.device import resolve_device

T = TypeVar("T")
TIMEOUT = timedelta(hours=12)
"""The first rank may prepare a large corpus while the others wait."""


@dataclass(frozen=True)
class Group:
    """The processes of a training, as one of them sees them. What exchanges values must be called by all ranks at the
    same point."""

    rank: int = 0
    size: int = 1
    launcher: int | None = None
    """the process that `torchrun` runs in, None without it"""

    @property
    def is_first(self) -> bool:
        """Whether this rank writes and speaks for all."""
        return self.rank == 0

    @property
    def is_orphaned(self) -> bool:
        """Whether `torchrun` was killed, which would leave its ranks training with nobody to stop them."""
        return self.launcher is not None and os.getppid() != self.launcher

    def rank_seed(self, seed: int) -> int:
        """A rank's seed for what must not be the same on all ranks."""
        return random.Random(f"{seed}/rank {self.rank}").getrandbits(63)

    def share(self, items: Sequence[T]) -> Sequence[T]:
        """This rank's part of what is to be divided: every `size`-th item."""
        return items[self.rank :: self.size]

    def interleave(self, shares: Sequence[Sequence[T]]) -> list[T]:
        """The inverse of `share`, from every rank's part."""
        found: list[T | None] = [None] * sum(map(len, shares))
        for rank, part in enumerate(shares):
            found[rank :: self.size] = part
        return found  # type: ignore[return-value]

    def from_first(self, call: Callable[[], T]) -> T:
        """What the first rank's call returns; the others wait for it.

        Raises:
            UserError: on the first rank, as its call does.
            SystemExit: then on the others, with the same exit code: one rank complains for all.
        """
        if self.size == 1:
            return call()
        held: list[Any] = [None, None]
        error: UserError | None = None
        if self.is_first:
            try:
                held[0] = call()
            except UserError as raised:
                error, held[1] = raised, raised.exit_code
        torch.distributed.broadcast_object_list(held, src=0)
        if error is not None:
            raise error
        if held[1] is not None:
            raise SystemExit(held[1])
        found: T = held[0]
        return found

    def first_before_others(self, call: Callable[[], T]) -> T:
        """What each rank's own call returns, the first rank's being over before the others begin. Raises as
        `from_first`."""
        found: list[T] = []
        self.from_first(lambda: found.append(call()))
        return found[0] if found else call()

    def gather(self, value: T) -> list[T]:
        """Every rank's value, by rank."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(values, value)
        return values

    def sum(self, values: Sequence[float]) -> list[float]:
        """Elementwise, in float64."""
        return self._reduced(values, torch.distributed.ReduceOp.SUM)

    def elementwise_max(self, values: Sequence[float]) -> list[float]:
        """Elementwise."""
        return self._reduced(values, torch.distributed.ReduceOp.MAX)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace every gradient by its sum over ranks (a rank without one counts as zeros), in one exchange."""
        if self.size == 1:
            return
        gradients = []
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            gradients.append(parameter.grad)
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        torch.distributed.all_reduce(flat)
        pieces = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, piece in zip(gradients, pieces, strict=True):
            gradient.copy_(piece.view_as(gradient))

    def _reduced(self, values: Sequence[float], how: Any) -> list[float]:
        if self.size == 1 or not values:
            return list(values)
        held: Tensor = torch.tensor(values, dtype=torch.float64)
        torch.distributed.all_reduce(held, how)
        found: list[float] = held.tolist()
        return found


ALONE = Group()


@contextmanager
def join_group() -> Iterator[Group]:
    """The processes that `torchrun` started, or this one alone. All but the first log errors only.

    Raises:
        UsageError: the environment variables that `torchrun` sets are there, but not as it sets them.
    """
    size = _num_processes()
    if size == 1:
        yield ALONE
        return
    launcher = os.getppid() if "TORCHELASTIC_RUN_ID" in os.environ else None
    # both, as a GPU's gradients go through nccl, and numbers and Python objects through gloo
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    torch.distributed.init_process_group(backend, timeout=TIMEOUT)
    group = Group(torch.distributed.get_rank(), size, launcher)
    package_log = logging.getLogger("seq2seq_attn")
    former = package_log.level
    if not group.is_first:
        package_log.setLevel(logging.ERROR)
    try:
        yield group
    finally:
        package_log.setLevel(former)
        torch.distributed.destroy_process_group()


def _num_processes() -> int:
    size = os.environ.get("WORLD_SIZE", "1")
    if not size.isascii() or not size.isdecimal() or int(size) < 1:
        raise UsageError(f"WORLD_SIZE={size!r}: expected a number of processes, as torchrun sets it; unset it")
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if int(size) > 1 and missing:
        raise UsageError(f"WORLD_SIZE={size} without {', '.join(missing)}: start with torchrun, or unset WORLD_SIZE")
    return int(size)


def local_device(name: str) -> torch.device:
    """The device of a rank: as `resolve_device`, but each rank of a machine takes a GPU of its own.

    Raises:
        UsageError: as `resolve_device`; more ranks than GPUs; one GPU named for several ranks.
    """
    device = resolve_device(name)
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if device.type != "cuda" or ranks_here == 1:
        return device
    num_gpus = torch.cuda.device_count()
    if device.index is not None or ranks_here > num_gpus:
        raise UsageError(
            f"device {name!r} for {ranks_here} processes and {num_gpus} usable CUDA GPUs: each takes one of its own;"
            " start fewer with --nproc-per-node, and leave the device at auto, or say cpu"
        )
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    return device
