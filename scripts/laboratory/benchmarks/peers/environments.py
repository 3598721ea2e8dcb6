"""Virtual environments of the peers that scripts/bench_peers measures.

Each gets its release from PyPI with `--no-deps`, since the pins of both forbid a current torch or what comes with it
(OpenNMT-py 3.5.1: torch < 2.3; JoeyNMT 2.3.0: protobuf < 3.21, which a current tensorboard refuses), and then only what
it imports on the way of training and translating. Nothing of theirs is edited.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from scripts.harness.records import ROOT
from seq2seq_attn.errors import UserError

TORCH = "torch==2.13.0"


class Peer(NamedTuple):
    """A release on PyPI."""

    version: str
    module: str
    needs: tuple[str, ...]


PEERS = {
    "joeynmt": Peer(
        "2.3.0",
        "joeynmt.training",
        (
            *("importlib-metadata", "matplotlib", "numpy", "packaging", "pyyaml", "sacrebleu", "sentencepiece"),
            *("setuptools", "subword-nmt", "tensorboard", "tqdm"),
        ),
    ),
    "OpenNMT-py": Peer(
        "3.5.1",
        "onmt.bin.train",
        (
            *("configargparse", "ctranslate2", "fasttext-wheel", "numpy", "pyahocorasick", "pyonmttok", "pyyaml"),
            *("rapidfuzz", "sacrebleu", "setuptools", "spacy"),
        ),
    ),
}


def ensure_environment(name: str, folder: Path) -> Path:
    """The interpreter of a peer's environment, which is made if the peer cannot be imported from it."""
    peer, python = PEERS[name], folder / name / "bin" / "python"
    if _has(python, name, peer):
        return python
    print(f"making {folder / name} (a few minutes)", file=sys.stderr)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # our constraints where we have any, so that all compute with the same torch and numpy
    constrained = [*install, "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*constrained, TORCH], check=True)
    subprocess.run([*install, "--no-deps", f"{name}=={peer.version}"], check=True)
    subprocess.run([*constrained, *peer.needs], check=True)
    if not _has(python, name, peer):
        raise UserError(f"{folder / name}: {peer.module} cannot be imported; remove that folder and try again")
    return python


def _has(python: Path, name: str, peer: Peer) -> bool:
    if not python.exists():
        return False
    test = f"import importlib.metadata as m; assert m.version({name!r}) == {peer.version!r}; import {peer.module}"
    return subprocess.run([str(python), "-c", test], capture_output=True).returncode == 0
