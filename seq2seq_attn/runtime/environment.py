"""Describe the environment of a run: versions, hardware, and the git commit of the code."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq_attn import __version__
from seq2seq_attn.files import JsonObject
from seq2seq_attn.runtime.plugins import plugins_by_module

if TYPE_CHECKING:
    import torch

_CPUINFO = Path("/proc/cpuinfo")
_PACKAGES = ("numpy", "torchtext", "spacy", "sentencepiece", "sacrebleu", "safetensors", "pydantic")


def describe_environment(command: Sequence[str], device: torch.device | str) -> JsonObject:
    """Return versions, hardware, number of threads and the command. If the code runs from a
    checkout, also return the git commit."""
    import torch

    device = torch.device(device)
    cpu = describe_cpu().get("model name") or platform.processor() or platform.machine()
    versions: dict[str, str | None] = dict.fromkeys(_PACKAGES)  # None if not installed
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    for plugin in plugins_by_module().values():
        if plugin.dist:
            versions[plugin.dist.name] = plugin.dist.version
    return {
        "seq2seq_attn": __version__,
        "python": platform.python_version(),
        "packages": {**versions, "torch": torch.__version__},
        "platform": platform.platform(),
        "cpu": cpu,
        "num_cpus": os.cpu_count(),
        "num_threads": torch.get_num_threads(),
        "device": str(device),
        "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else cpu,
        "cuda": torch.version.cuda,
        "git": _git_state(Path(__file__).parents[2]),
        "command": [os.fsencode(word).decode(errors="backslashreplace") for word in command],
        "written_at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


@cache
def describe_cpu() -> dict[str, str]:
    """Return the fields of the first CPU in Linux's /proc/cpuinfo. Return an empty dict if the file
    cannot be read."""
    try:
        text = _CPUINFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    fields = {}
    for line in text.split("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.strip()
    return fields


def _git_state(checkout: Path) -> JsonObject | None:
    """Return the commit, and whether the code is dirty: a tracked file differs from the commit, or
    the package has an untracked file. Return None if the code does not run from a checkout."""

    def git(*arguments: str) -> str:
        command = ["git", "--no-optional-locks", "-C", str(checkout), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
        return done.stdout.strip()

    if not (checkout / ".git").exists():
        return None
    try:
        tracked = git("status", "--porcelain", "--untracked-files=no")
        is_dirty = bool(tracked or git("status", "--porcelain", "--", "seq2seq_attn"))
        return {"commit": git("rev-parse", "HEAD"), "is_dirty": is_dirty}
    except (OSError, subprocess.SubprocessError):
        return None
