"""The run directory: written by training, read by everything else. It needs nothing outside itself.

    config.yaml  environment.json  finished.json (training has finished)
    model.safetensors (best)  last/ (for a resume)
    <side>.tokenizer.json  <side>.sentencepiece.model  <side>.vocab
    train.log  metrics.jsonl  TensorBoard events  hyps/<split>.txt  report.json  report.md
    reverse/ (a run directory with the model of the other direction, where an objective trains one)

Tensors are safetensors; the rest is plain text, JSON or YAML. There are no pickles. Writes are atomic.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seq2seq_attn.config import Config, ModelConfig
from seq2seq_attn.config.sealed import read_sealed_config, write_sealed_config
from seq2seq_attn.data.store import PreparedCorpus, vocab_path
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import open_regular, read_checked_json, sha256_of, write_checked_json
from seq2seq_attn.model.weights import WeightsInfo, read_info, read_tensors, write_weights
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.text.tokenizers.base import SIDES, VECTORS, Side, Tokenizer
from seq2seq_attn.text.tokenizers.factory import load_tokenizer
from seq2seq_attn.text.tokenizers.several import vector_sizes
from seq2seq_attn.text.vocab import Vocab

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from seq2seq_attn.model.seq2seq import Seq2Seq

_CONFIG, _MODEL, _FINISHED, _ENVIRONMENT = "config.yaml", "model.safetensors", "finished.json", "environment.json"
_LOG, _METRICS, _LAST = "train.log", "metrics.jsonl", "last"
REVERSE = "reverse"
LOCK = ".train.lock"
"""locked while training writes to the run; the file itself stays"""
_TEXT_FILES = ("*.tokenizer.json", "*.sentencepiece.model", "*.vocab")
"""Part of the model: the same weights with other files would translate differently."""
_APPENDED = (_LOG, _METRICS, LOCK, _LAST, REVERSE)
"""Training appends to these, or writes in them; every other file is replaced as a whole."""
_CLOCKS_DIFFER_BY_S = 24 * 3600.0
"""A run that finished more than this far in the future has a wrong date."""
# Everything that a run writes; `overwrite` removes these and nothing else.
_OWN_FILES = (
    *(_CONFIG, _MODEL, _FINISHED, _ENVIRONMENT, _LOG, _METRICS),
    *("report.json", "report.md", "report.*.json", "report.*.md"),
    *("*-by-length*.png", "*-by-length*.svg", "*-by-length*.pdf"),
    *(*_TEXT_FILES, "events.out.tfevents.*", ".*.tmp", _LAST, "hyps", REVERSE),
)

log = logging.getLogger(__name__)


class RunDir:
    """A run directory. Creating the object touches no file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"RunDir({str(self.path)!r})"

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False) -> RunDir:
        """Create an empty run directory. With `overwrite`, the files of an earlier run are removed first.

        Raises:
            UserError: the folder is not empty, and `overwrite` is false or it is not a run directory.
        """
        run = cls(path)
        if run.path.exists() and not run.path.is_dir():
            raise UserError(f"{path}: a file, not a folder; choose another --run-dir")
        if run.path.is_dir() and not run.is_empty():
            if not overwrite:
                raise UserError(
                    f"{path}: not empty; use --resume to continue, --overwrite to start over, or another --run-dir"
                )
            if not run.config_path.exists():
                raise UserError(
                    f"{path}: not empty and not a run directory, so --overwrite keeps it; choose another --run-dir"
                )
            files = {old for pattern in _OWN_FILES for old in run.path.glob(pattern)}
            for old in sorted(files, key=lambda path: path.name == _CONFIG):  # last: it makes the folder a run
                shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        run.path.mkdir(parents=True, exist_ok=True)
        return run

    def is_empty(self) -> bool:
        """Whether the existing directory is empty, apart from a lock file."""
        return all(path.name == LOCK for path in self.path.iterdir())

    @property
    def config_path(self) -> Path:
        """The full configuration, with a checksum."""
        return self.path / _CONFIG

    @property
    def last_dir(self) -> Path:
        """The state that `--resume` needs."""
        return self.path / _LAST

    @property
    def reverse(self) -> RunDir:
        """The run directory of the reverse model, which training may have made."""
        return RunDir(self.path / REVERSE)

    @property
    def model_path(self) -> Path:
        """The best model."""
        return self.path / _MODEL

    @property
    def metrics_path(self) -> Path:
        """The training history, one JSON object per line."""
        return self.path / _METRICS

    @property
    def log_path(self) -> Path:
        """The log of training, in words."""
        return self.path / _LOG

    @property
    def hyps_dir(self) -> Path:
        """The folder with `evaluate`'s translations of test sets."""
        return self.path / "hyps"

    # ---- configuration, text ----

    def config(self) -> Config:
        """The full configuration of the run.

        Raises:
            UserError: this is not a run directory, or its configuration is damaged or of another version.
        """
        if not self.config_path.is_file():
            raise UserError(f"{self.path}: not a run directory (no {_CONFIG}); name one that `seq2seq train` wrote")
        return read_sealed_config(self.config_path)

    def save_config(self, config: Config) -> None:
        """Write the full configuration, with a checksum."""
        write_sealed_config(self.config_path, config)

    def save_text(self, prepared: PreparedCorpus, *, is_reverse: bool = False) -> None:
        """Copy the tokenizers and vocabularies of a prepared corpus, so that the run is self-contained. `is_reverse`:
        the corpus's target is the run's source."""
        self.path.mkdir(parents=True, exist_ok=True)
        source, target = reversed(SIDES) if is_reverse else SIDES
        prepared.source_tokenizer.save(self.path, source)
        prepared.target_tokenizer.save(self.path, target)
        prepared.source_vocab.save(vocab_path(self.path, source))
        prepared.target_vocab.save(vocab_path(self.path, target))

    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of the source side. Raises UserError if its files are missing or damaged."""
        return load_tokenizer(self.path, "source")

    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of the target side. Raises UserError if its files are missing or damaged."""
        return load_tokenizer(self.path, "target")

    def source_vocab(self) -> Vocab:
        """The vocabulary of the source side. Raises UserError if its file is missing or damaged."""
        return Vocab.load(vocab_path(self.path, "source"))

    def target_vocab(self) -> Vocab:
        """The vocabulary of the target side. Raises UserError if its file is missing or damaged."""
        return Vocab.load(vocab_path(self.path, "target"))

    # ---- the best model ----

    def save_best(self, state_dict: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
        """Write the best model so far: tensors by name, metadata (update, score, ...), and the hashes of the tokenizer
        and vocabulary files that belong to it."""
        belonging = sorted(path for pattern in _TEXT_FILES for path in self.path.glob(pattern))
        write_weights(self.model_path, state_dict, metadata, {path.name: sha256_of(path) for path in belonging})

    def load_best(self) -> dict[str, Tensor]:
        """The tensors of the best model, on the CPU.

        Raises:
            UserError: there is none, or the file is damaged, of another version, or not a model.
        """
        self.check_best()
        return read_tensors(self.model_path)

    def load_model(self, config: ModelConfig) -> Seq2Seq:
        """The best model, on the CPU. Its tokenizer and vocabulary files are checked first, and sizes that do not match
        the configuration are rejected before they take memory.

        Raises:
            UserError: as `load_best`, or the model does not match this configuration and these vocabularies.
        """
        import torch

        from seq2seq_attn.model.build import build_model, load_weights, model_without_weights
        from seq2seq_attn.model.variants import UnknownVariant

        self.check_best()
        sizes: dict[str, Any] = {f"num_{side}_ids": self._num_ids(side) for side in SIDES}
        sizes["vector_sizes"] = self._vector_sizes()
        try:
            expected = model_without_weights(config, **sizes).state_dict()
        except UnknownVariant as unknown:
            raise unknown.of_run(self.path) from None
        tensors = read_tensors(self.model_path, expected)
        with torch.random.fork_rng(devices=[]):  # building draws weights that are replaced right away
            model = build_model(config, **sizes)
        load_weights(model, tensors, self.model_path)
        return model

    def best_metadata(self) -> dict[str, str]:
        """The metadata given to `save_best`. Raises UserError as `load_best`."""
        return self._best_info().about

    def _best_info(self) -> WeightsInfo:
        path = self.model_path
        if not path.exists():
            reason = "training has saved no model yet" if self.config_path.is_file() else "not a run directory"
            raise UserError(f"{self.path}: no {_MODEL} ({reason}); train with `seq2seq train --run-dir {self.path}`")
        return read_info(path)

    def check_best(self) -> None:
        """Check the best model and the files that belong to it. Raises UserError as `load_model`."""
        for name, digest in self._best_info().files.items():
            self._check_belongs(self.path / name, digest)

    def _num_ids(self, side: Side) -> int:
        """The size of a vocabulary, without loading it."""
        path = vocab_path(self.path, side)
        try:
            with open_regular(path) as stream:
                return sum(1 for _ in stream)
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); copy the run again") from None

    def _vector_sizes(self) -> list[int | None]:
        """The dimension of each source's vectors; None for text. A tokenizer of texts is not loaded."""
        sources = self.config().data.sources
        return vector_sizes(self.source_tokenizer()) if VECTORS in sources else [None] * len(sources)

    def _check_belongs(self, path: Path, digest: str) -> None:
        try:
            is_same = sha256_of(path) == digest
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); copy the run again") from None
        if not is_same:
            raise UserError(f"{path}: damaged, or not the file that {_MODEL} was trained with; copy the run again")

    # ---- state, environment ----

    def mark_finished(self, values: Mapping[str, Any] | None = None) -> None:
        """Record that training has finished, with the time and the given JSON values."""
        write_checked_json(self.path / _FINISHED, {"finished_at": time.time(), **(values or {})})

    def mark_unfinished(self) -> None:
        """Remove the mark of `mark_finished`: training continues."""
        (self.path / _FINISHED).unlink(missing_ok=True)

    def finished_at(self) -> float | None:
        """When training finished, in seconds since 1970; None if it has not, or left no model."""
        if not self.model_path.is_file() or not (self.path / _FINISHED).is_file():
            return None
        try:
            finished_at = float(read_checked_json(self.path / _FINISHED)["finished_at"])
            if finished_at < time.time() + _CLOCKS_DIFFER_BY_S:
                return finished_at
            reason = "its date is in the future"
        except (UserError, KeyError, TypeError, ValueError):
            reason = "not readable"
        log.warning("%s: %s; the run counts as unfinished", self.path / _FINISHED, reason)
        return None

    def is_finished(self) -> bool:
        """Whether training has finished and left a model."""
        return self.finished_at() is not None

    def reopen(self, config: Config) -> None:
        """Prepare a run for resuming: mark it unfinished, write the configuration, and remove temporary files of a
        killed process.

        Raises:
            UserError: the best model, or a file that belongs to it, is damaged.
        """
        if self.model_path.exists():
            self.check_best()
        for name in (_CONFIG, _MODEL, _FINISHED, _ENVIRONMENT, *_TEXT_FILES):
            for leftover in self.path.glob(f".{name}.*.tmp"):
                leftover.unlink()
        self.mark_unfinished()
        self.save_config(config)

    def check_no_links(self) -> None:
        """Check that the files that training appends to are not symbolic links to somewhere else.

        Raises:
            UserError: a file is a link.
        """
        for path in (self.path / name for name in _APPENDED):
            if path.is_symlink():
                raise UserError(
                    f"{path}: a link to {path.readlink()}, but training writes inside its run directory only; replace "
                    "the link by its target, or choose another --run-dir"
                )

    def write_environment(self, command: Sequence[str], device: torch.device | str) -> None:
        """Write `environment.json`: versions, hardware, the code's git commit, the command."""
        write_checked_json(self.path / _ENVIRONMENT, describe_environment(command, device))

    def environment(self) -> dict[str, Any] | None:
        """The environment that `write_environment` wrote; None if it is missing or (with a warning) damaged."""
        if not (self.path / _ENVIRONMENT).exists():
            return None
        try:
            return read_checked_json(self.path / _ENVIRONMENT)
        except UserError as error:
            log.warning("%s; left out", error)
            return None


def newest_run(runs_dir: str | Path = "runs") -> RunDir:
    """The run in a folder that finished last.

    Raises:
        UserError: there is none.
    """
    runs = [RunDir(path) for path in sorted(Path(runs_dir).glob("*")) if path.is_dir()]
    finished = [(finished_at, run) for run in runs if (finished_at := run.finished_at()) is not None]
    if finished:
        return max(finished, key=lambda pair: pair[0])[1]
    unfinished = [run for run in runs if run.model_path.is_file()]
    hint = f"; {unfinished[-1].path} has a model but has not finished: name it to use it" if unfinished else ""
    advice = "train one with `seq2seq train -c quickstart` (minutes, no download), or name its directory"
    raise UserError(f"{runs_dir}/: no finished run; {advice}{hint}")
