"""Describe the environment of a run: versions, hardware, the code's commit."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    import torch

_PACKAGES = ("numpy", "torchtext", "spacy", "sentencepiece", "sacrebleu", "safetensors", "pydantic")


def describe_environment(command: Sequence[str], device: torch.device | str) -> dict[str, Any]:
    """Versions, hardware, threads, the command, and the code's git commit if it runs from a
    checkout."""
    import torch

    device = torch.device(device)
    versions: dict[str, str | None] = dict.fromkeys(_PACKAGES)  # None: not installed
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "seq2seq_attn": __version__,
        "python": platform.python_version(),
        "packages": {**versions, "torch": torch.__version__},
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "num_cpus": os.cpu_count(),
        "num_threads": torch.get_num_threads(),
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device)
        if device.type == "cuda"
        else _cpu_model(),
        "cuda": torch.version.cuda,
        "git": _git_state(Path(__file__).parents[2]),
        "command": [os.fsencode(word).decode(errors="backslashreplace") for word in command],
        "written_at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _git_state(checkout: Path) -> dict[str, Any] | None:
    """The commit, and whether tracked files or untracked ones of the package differ from it; None
    if the code does not run from a checkout."""

    def git(*arguments: str) -> str:
        command = ["git", "--no-optional-locks", "-C", str(checkout), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=20
        ).stdout.strip()

    if not (checkout / ".git").exists():
        return None
    try:
        tracked = git("status", "--porcelain", "--untracked-files=no")
        is_dirty = bool(tracked or git("status", "--porcelain", "--", "seq2seq_attn"))
        return {"commit": git("rev-parse", "HEAD"), "is_dirty": is_dirty}
    except (OSError, subprocess.SubprocessError):
        return None
