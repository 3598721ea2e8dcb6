"""The run directory: what training leaves behind and everybody else reads. It needs nothing outside itself.

    config.yaml  environment.json  finished.json (training came to its end)
    model.safetensors (best)  last/ (for a resume)
    <side>.tokenizer.json  <side>.sentencepiece.model  <side>.vocab
    train.log  metrics.jsonl  TensorBoard events  hyps/<split>.txt  report.json  report.md

Tensors are safetensors, the rest is plain text, JSON or YAML: nothing here is a pickle. Every file is written whole or
not at all.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq_attn.config import Config, dump_config, load_config
from seq2seq_attn.data.store import PreparedCorpus, vocab_path
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import atomic_path, read_json, write_json, write_text
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.tokenizers.factory import load_tokenizer
from seq2seq_attn.text.vocab import Vocab

if TYPE_CHECKING:
    import torch
    from torch import Tensor

FORMAT_VERSION = 1
"""Of `model.safetensors`: goes up when older versions of the package could not read it."""
_FORMAT = "seq2seq-attn model"
_CONFIG, _MODEL, _FINISHED, _ENVIRONMENT = "config.yaml", "model.safetensors", "finished.json", "environment.json"
LOCK = ".train.lock"
"""held while training writes to the run; the file stays when the lock is gone"""
# Everything that a run writes; `overwrite` removes these and nothing else.
_OWN_FILES = (
    *(_CONFIG, _MODEL, _FINISHED, _ENVIRONMENT, "train.log", "metrics.jsonl", "report.*", "*.png"),
    *("*.tokenizer.json", "*.sentencepiece.model", "*.vocab", "events.out.tfevents.*", ".*.tmp", "last", "hyps"),
)

log = logging.getLogger(__name__)


class RunDir:
    """A run directory. Making the object touches no file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"RunDir({str(self.path)!r})"

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False) -> RunDir:
        """Make an empty run directory; with `overwrite`, first remove what an earlier run has written there.

        Raises:
            UserError: the folder holds something and `overwrite` was not asked for, or holds no run to overwrite.
        """
        run = cls(path)
        if run.path.exists() and not run.path.is_dir():
            raise UserError(f"{path}: a file is there; choose another --run-dir")
        if run.path.is_dir() and not run.is_empty():
            if not overwrite:
                raise UserError(
                    f"{path}: not empty; go on with --resume, start anew with --overwrite, or choose another --run-dir"
                )
            if not (run.path / _CONFIG).exists():
                raise UserError(
                    f"{path}: not empty and not a run directory, so --overwrite spares it; choose another --run-dir"
                )
            for found in {found for pattern in _OWN_FILES for found in run.path.glob(pattern)}:
                shutil.rmtree(found) if found.is_dir() and not found.is_symlink() else found.unlink()
        run.path.mkdir(parents=True, exist_ok=True)
        return run

    def is_empty(self) -> bool:
        """Whether the directory, which must exist, holds nothing (a lock does not count)."""
        return all(path.name == LOCK for path in self.path.iterdir())

    @property
    def last_dir(self) -> Path:
        """Where training keeps what a resume needs."""
        return self.path / "last"

    @property
    def model_path(self) -> Path:
        """The best model."""
        return self.path / _MODEL

    @property
    def metrics_path(self) -> Path:
        """The history of the training, one JSON object a line."""
        return self.path / "metrics.jsonl"

    @property
    def report_path(self) -> Path:
        """The scores, as JSON; `report.md` lies beside it."""
        return self.path / "report.json"

    @property
    def hyps_dir(self) -> Path:
        """Where `evaluate` keeps translations of test sets."""
        return self.path / "hyps"

    def hyps_path(self, split: str) -> Path:
        """The translations of a split, one a line."""
        return self.hyps_dir / f"{split}.txt"

    # ---- configuration, text ----

    def config(self) -> Config:
        """The full configuration of the run.

        Raises:
            UserError: this is not a run directory, or its configuration is damaged or of another version.
        """
        path = self.path / _CONFIG
        if not path.is_file():
            raise UserError(f"{self.path}: not a run directory (no {_CONFIG}); name one that `seq2seq train` wrote")
        if not path.read_bytes().strip():
            raise UserError(f"{path}: empty; it is damaged: copy the run again")
        try:
            return load_config([str(path)])
        except UsageError as error:
            raise UserError(f"{path}: not readable by this version of seq2seq-attn: {error}") from None

    def save_config(self, config: Config) -> None:
        """Write the full configuration."""
        write_text(self.path / _CONFIG, dump_config(config))

    def save_text(self, prepared: PreparedCorpus) -> None:
        """Copy tokenisers and vocabularies of a prepared corpus, so that the run can do without it."""
        self.path.mkdir(parents=True, exist_ok=True)
        prepared.source_tokenizer.save(self.path, "source")
        prepared.target_tokenizer.save(self.path, "target")
        prepared.source_vocab.save(vocab_path(self.path, "source"))
        prepared.target_vocab.save(vocab_path(self.path, "target"))

    def source_tokenizer(self) -> Tokenizer:
        """The tokeniser of the source side. Raises UserError if its files are missing or damaged."""
        return load_tokenizer(self.path, "source")

    def target_tokenizer(self) -> Tokenizer:
        """The tokeniser of the target side. Raises UserError if its files are missing or damaged."""
        return load_tokenizer(self.path, "target")

    def source_vocab(self) -> Vocab:
        """The vocabulary of the source side. Raises UserError if its file is missing or damaged."""
        return Vocab.load(vocab_path(self.path, "source"))

    def target_vocab(self) -> Vocab:
        """The vocabulary of the target side. Raises UserError if its file is missing or damaged."""
        return Vocab.load(vocab_path(self.path, "target"))

    # ---- the best model ----

    def save_best(self, state_dict: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """Write the best model so far: tensors by name, and strings that say what it is (update, score, ...)."""
        from safetensors.torch import save_file

        # Tied parameters share memory, which the format refuses: each name gets its own copy.
        tensors = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in state_dict.items()}
        header = {**metadata, "format": _FORMAT, "format_version": str(FORMAT_VERSION)}
        with atomic_path(self.model_path) as temporary:
            save_file(tensors, temporary, metadata=header)

    def load_best(self) -> dict[str, Tensor]:
        """The tensors of the best model, on the CPU.

        Raises:
            UserError: there is none, or the file is damaged, foreign, or of another version.
        """
        return self._read_model()[1]

    def best_metadata(self) -> dict[str, str]:
        """What `save_best` was told about the model. Raises UserError as `load_best`."""
        return self._read_model(with_tensors=False)[0]

    def _read_model(self, with_tensors: bool = True) -> tuple[dict[str, str], dict[str, Tensor]]:
        from safetensors import SafetensorError, safe_open

        path = self.model_path
        if not path.is_file():
            reason = "training has saved no model yet" if (self.path / _CONFIG).is_file() else "not a run directory"
            raise UserError(f"{self.path}: no {_MODEL} ({reason}); train with `seq2seq train --run-dir {self.path}`")
        try:
            with safe_open(path, framework="pt") as file:
                metadata: dict[str, str] = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()} if with_tensors else {}
        except (SafetensorError, OSError, ValueError) as error:
            raise UserError(
                f"{path}: not a safetensors file, or damaged ({error}); train or copy the run again"
            ) from None
        if metadata.get("format") != _FORMAT:
            raise UserError(
                f"{path}: a safetensors file, but not a model of seq2seq-attn; name a run that `seq2seq train` wrote"
            )
        if metadata.get("format_version") != str(FORMAT_VERSION):
            raise UserError(
                f"{path}: model of format {metadata.get('format_version')}, this version of seq2seq-attn reads format "
                f"{FORMAT_VERSION}; use the version that trained it or train again"
            )
        return metadata, tensors

    # ---- state, environment ----

    def mark_finished(self, values: Mapping[str, Any] | None = None) -> None:
        """Note that training came to its end, when, and whatever else is given (plain JSON)."""
        write_json(self.path / _FINISHED, {"finished_at": time.time(), **(values or {})})

    def mark_unfinished(self) -> None:
        """Take the mark away: training goes on."""
        (self.path / _FINISHED).unlink(missing_ok=True)

    def finished_at(self) -> float | None:
        """When training came to its end, in seconds since 1970; None if it has not, or left no model."""
        if not self.model_path.is_file() or not (self.path / _FINISHED).is_file():
            return None
        try:
            return float(read_json(self.path / _FINISHED)["finished_at"])
        except (UserError, KeyError, TypeError, ValueError):
            log.warning("%s: not readable; the run counts as unfinished", self.path / _FINISHED)
            return None

    def is_finished(self) -> bool:
        """Training came to its end and left a model."""
        return self.finished_at() is not None

    def write_environment(self, command: Sequence[str], device: torch.device | str) -> None:
        """Write `environment.json`: versions, hardware, the code's git commit, the command."""
        write_json(self.path / _ENVIRONMENT, describe_environment(command, device))


def newest_run(runs_dir: str | Path = "runs") -> RunDir:
    """The run under a folder that finished last.

    Raises:
        UserError: there is none.
    """
    runs = [RunDir(path) for path in sorted(Path(runs_dir).glob("*")) if path.is_dir()]
    finished = [(finished_at, run) for run in runs if (finished_at := run.finished_at()) is not None]
    if finished:
        return max(finished, key=lambda pair: pair[0])[1]
    begun = [run for run in runs if run.model_path.is_file()]
    hint = f"; {begun[-1].path} has a model but has not finished: name it to use it" if begun else ""
    raise UserError(f"{runs_dir}/: no finished run; train one with `seq2seq train`, or name its directory{hint}")
