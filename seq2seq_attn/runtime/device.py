"""Resolve the name of a device."""

import torch

from seq2seq_attn.errors import UsageError


def resolve_device(name: str) -> torch.device:
    """The device called `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:N`. Raises UsageError: the name is none
    of these, or there is no such GPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (":" in name and (kind == "cpu" or not number.isdecimal())):
        raise UsageError(f"device {name!r}: expected auto, cpu, cuda or cuda:N")
    if kind == "cuda" and int(number or 0) >= (num_gpus := torch.cuda.device_count()):
        raise UsageError(f"device {name!r}: this machine has {num_gpus} usable CUDA GPUs; use auto or cpu")
    return torch.device(name)
