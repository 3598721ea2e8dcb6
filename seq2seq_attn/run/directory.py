"""The run directory: `Run` reads and writes its files."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from seq2seq_attn.config import Config, ModelConfig, dump_config
from seq2seq_attn.config.load import RUN_CONFIG, load_run_config
from seq2seq_attn.data.line_facts import LineFacts
from seq2seq_attn.data.sources import split_names
from seq2seq_attn.data.store import RUN_CORPUS, PreparedCorpus, vocab_path
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import (
    MANIFEST,
    ListedFiles,
    check_files,
    list_files,
    remove_listed,
    write_listed,
    write_listed_json,
    write_text,
)
from seq2seq_attn.model.weights import Saved, read_tensors, write_tensors
from seq2seq_attn.run import names
from seq2seq_attn.run.cleaning import remove_run_files, remove_run_leftovers
from seq2seq_attn.run.history import Validation, parse_validations
from seq2seq_attn.run.hub import HUB, download
from seq2seq_attn.run.sets import SetText, read_set, write_sets
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.text.known_words import WORDS, KnownWords
from seq2seq_attn.text.tokenizers.base import SIDES, Side, Tokenizer
from seq2seq_attn.text.tokenizers.factory import load_source, load_tokenizer
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.text.vocab import Vocab

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from seq2seq_attn.model.seq2seq import Seq2Seq

log = logging.getLogger(__name__)


class ModelInfo(NamedTuple):
    """A description of a loaded model."""

    about: dict[str, Any]
    """update and epoch of the model, and the scores of the validation that selected it"""
    sha256: str
    """SHA-256 of the model file"""


class Run:
    """A run directory. Creating the object touches no file; each file is read and checked against
    the manifest once, when it is first needed."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._files = ListedFiles(self.path)
        self.config_path = self.path / RUN_CONFIG
        self.model_path = self.path / names.MODEL
        """file of the best model"""
        self.last_dir = self.path / names.LAST
        self.state_path = self.last_dir / "state.safetensors"
        """file of the state that `--resume` needs (`train/checkpoint.py`)"""
        self.metrics_path = self.path / names.METRICS
        """file of the training history: one JSON object per line"""
        self.log_path = self.path / names.LOG
        """file of the training log"""
        self.hyps_dir = self.path / names.HYPS
        """folder of the translations of test sets that `evaluate` writes"""

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @classmethod
    def open(cls, name: str | Path | Run) -> Run:
        """Open a run for reading.

        `name` is a directory, or `hf:OWNER/NAME` or `hf:OWNER/NAME@REVISION` for a run on the
        Hugging Face hub. A run on the hub is downloaded, unless the cache of the hub has it. A
        `Run` is returned unchanged.

        Raises:
            UserError: the run cannot be downloaded, its configuration is missing or damaged, or the
                configuration of a downloaded run names another run as a scorer.
        """
        if isinstance(name, Run):
            return name
        if not str(name).startswith(HUB):
            run = cls(name)
            _ = run.config  # raises UserError unless the directory is a run
            return run
        run = cls(download(str(name), [*names.LISTED, MANIFEST]))
        if run.config.search.scorers:
            raise UserError(
                f"{name}: its search.scorers name a run of this machine, which a downloaded run "
                "may not"
            )
        return run

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False) -> Run:
        """Create an empty run directory. With `overwrite`, remove the files of an earlier run
        first. Raises the UsageError of `check_free`."""
        run = cls(path)
        run.check_free(overwrite=overwrite)
        remove_run_files(run.path)
        run.path.mkdir(parents=True, exist_ok=True)
        return run

    def check_free(self, *, overwrite: bool) -> None:
        """Check that a new run may be written to this directory. Raises UsageError: the directory
        holds a run and `overwrite` is false, or it holds other files."""
        if not self.path.exists() or (self.path.is_dir() and self.is_empty()):
            return
        if not self.config_path.exists():
            raise UsageError(
                f"{self.path}: neither empty nor a run (no {RUN_CONFIG}); choose another --run-dir"
            )
        if not overwrite:
            raise UsageError(
                f"{self.path}: already holds a run; --resume continues it, --overwrite replaces it"
            )

    def is_empty(self) -> bool:
        """Return whether the existing directory is empty, apart from a lock file."""
        return all(path.name == names.LOCK for path in self.path.iterdir())

    @cached_property
    def reverse(self) -> Run:
        """The run directory of the reverse model. It exists only if training used a reverse
        model."""
        return Run(self.path / names.REVERSE)

    @cached_property
    def config(self) -> Config:
        """The full configuration of the run. Raises UserError: the directory is not a run, or its
        configuration is damaged or was written by another version."""
        return load_run_config(self._files)

    def save_config(self, config: Config) -> None:
        """Write the full configuration of the run."""
        write_listed(self.config_path, dump_config(config).encode())
        self.config = config

    def save_text(self, prepared: PreparedCorpus, sides: tuple[Side, Side] = SIDES) -> None:
        """Write the tokenizers and vocabularies of a prepared corpus, so that the run needs no
        other files. Also write hashes and facts of the text of the corpus. `sides` are the sides of
        the run that correspond to source and target of the corpus; the reverse model swaps them."""
        self.path.mkdir(parents=True, exist_ok=True)
        source, target = sides
        prepared.source_tokenizer.save(self.path, source)
        prepared.target_tokenizer.save(self.path, target)
        prepared.source_vocab.save(vocab_path(self.path, source))
        prepared.target_vocab.save(vocab_path(self.path, target))
        words_path = prepared.directory / WORDS
        if sides == SIDES and words_path.exists():
            write_text(self.path / WORDS, words_path.read_text(encoding="utf-8"))
        paths = [path for pattern in names.TEXT_FILES for path in self.path.glob(pattern)]
        list_files(self.path, paths)
        lines = prepared.line_facts(sides).model_dump()
        write_listed_json(
            self.path / RUN_CORPUS, {**prepared.text_hashes(sides), names.LINES: lines}
        )

    def save_sets(self, prepared: PreparedCorpus, sides: tuple[Side, Side] = SIDES) -> None:
        """Write the text of the validation and test sets of a prepared corpus. `sides` has the same
        meaning as in `save_text`."""
        write_sets(self.path / names.SETS, prepared, sides)

    @property
    def splits(self) -> list[str]:
        """The names of the splits that `save_sets` wrote: `valid`, then the test sets."""
        return split_names(self.config.data)[1:]

    def read_set(self, split: str) -> SetText:
        """Return the text of a validation or test set. Raises UserError: the run does not keep the
        set, or a file is damaged."""
        return read_set(self.path, names.SETS, split)

    @cached_property
    def text_hashes(self) -> dict[str, str]:
        """The hashes of the training corpus, as `PreparedCorpus.text_hashes` returns them. Raises
        UserError: the file with the hashes is missing or damaged."""
        return self._files.read_json(RUN_CORPUS)

    @cached_property
    def line_facts(self) -> LineFacts:
        """The facts about the lines of the training text. Raises UserError: their file is
        damaged."""
        try:
            return LineFacts.model_validate(self._files.read_json(RUN_CORPUS).get(names.LINES, {}))
        except ValidationError:
            path = self.path / RUN_CORPUS
            raise UserError(f"{path}: {names.LINES!r} is damaged; copy the run again") from None

    def tokenizer_hashes(self, side: Side) -> dict[str, str]:
        """Return the SHA-256 of each tokenizer and vocabulary file of a side, by file name. Raises
        UserError: a file is missing or damaged."""
        listed = [name for name in self._files.listed if name.startswith(f"{side}.")]
        return {name: self._files.sha256(name) for name in listed}

    @cached_property
    def source_tokenizer(self) -> Source:
        """The object that splits source lines into columns and tokenizes them.

        The tokenizer file is checked against the configuration of the run. Otherwise a modified
        file could declare a column of vectors, and the run would then open any file that an input
        line names.

        Raises:
            UserError: a file is missing or damaged, or the tokenizer does not match the
                configuration.
        """
        source = load_source(self.path, read=self._read)
        layout = self.config.data.layout
        sizes = layout.vector_sizes(source.vector_size)
        if source.num_columns != len(layout.columns) or list(source.vector_sizes) != sizes:
            raise UserError(
                f"{self.path}/source.tokenizer.json: not the tokenizer of this run's {RUN_CONFIG}; "
                "copy the run again"
            )
        return source

    @cached_property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of the target side. Raises UserError: a file is missing or damaged."""
        return load_tokenizer(self.path, "target", self._read)

    @cached_property
    def source_vocab(self) -> Vocab:
        """The vocabulary of the source side. Raises UserError: a file is missing or damaged."""
        return Vocab.load(vocab_path(self.path, "source"), self._read)

    @cached_property
    def target_vocab(self) -> Vocab:
        """The vocabulary of the target side. Raises UserError: a file is missing or damaged."""
        return Vocab.load(vocab_path(self.path, "target"), self._read)

    @cached_property
    def words(self) -> KnownWords | None:
        """The words of the training text. None if the source is not one text, or for the reverse
        model. Raises UserError: the file is damaged."""
        if WORDS not in self._files.listed:
            return None
        return KnownWords.load(self.path / WORDS, self._read)

    def _read(self, path: Path) -> bytes:
        return self._files.read(path.name)

    # ---- the best model ----

    def save_best(self, state_dict: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write the tensors of the best model so far, by name, and JSON values that describe the
        model, such as the update and the scores. Raises the UserError of `write_tensors`."""
        write_tensors(self.model_path, state_dict, about)

    def load_best(self) -> Saved:
        """Return the tensors of the best model, on the CPU, and the values that `save_best` stored
        with them. Raises UserError: there is no model, or the file is damaged."""
        if not self.model_path.exists():
            raise UserError(
                f"{self.path}: no {names.MODEL}; train one with `seq2seq train --run-dir "
                f"{self.path}`"
            )
        return read_tensors(self.model_path, self._files)

    def load_model(self, config: ModelConfig) -> tuple[Seq2Seq, ModelInfo]:
        """Return the best model, on the CPU, and its description.

        Tensors whose shapes do not match the configuration are rejected before the model is built,
        so that they take no memory.

        Raises:
            UserError: there is no model, the file is damaged, or the model does not match this
                configuration and the vocabularies of the run.
        """
        import torch

        from seq2seq_attn.model.build import build_model, model_without_weights

        sizes: dict[str, Any] = {
            "num_source_ids": len(self.source_vocab),
            "num_target_ids": len(self.target_vocab),
            "vector_sizes": self.source_tokenizer.vector_sizes,
        }
        try:
            expected = model_without_weights(config, **sizes).state_dict()
        except UsageError as error:  # such as a variant that needs --import
            raise UsageError(f"{self.path}: {error}") from None
        saved = self.load_best()
        if _shapes(saved.tensors) != _shapes(expected):
            raise UserError(
                f"{self.model_path}: not the model of this run's {RUN_CONFIG} and vocabularies; "
                "copy the run again"
            )
        # Building a model draws random weights. The saved weights replace them.
        with torch.random.fork_rng(devices=[]):
            model = build_model(config, **sizes, is_loaded=True)
        model.load_state_dict(saved.tensors)
        return model, ModelInfo(saved.values, saved.sha256)

    # ---- state, environment ----

    def mark_finished(self, values: Mapping[str, Any]) -> None:
        """Record that training has finished, with the current time and the JSON values."""
        write_listed_json(self.path / names.FINISHED, {"finished_at": time.time(), **values})

    def finished_at(self) -> float | None:
        """Return the time at which training finished, in seconds since 1970. Return None if
        training has not finished or has left no model."""
        if not self.model_path.is_file() or not (self.path / names.FINISHED).is_file():
            return None
        try:
            return float(self._files.read_json(names.FINISHED)["finished_at"])
        except Exception as error:  # the file may hold any bytes
            path = self.path / names.FINISHED
            log.warning("%s: the run counts as unfinished (%s)", path, error)
            return None

    @property
    def score(self) -> float | None:
        """The best score by `train.validation.metric`; None if training has not finished."""
        if not self.is_finished():
            return None
        score: float | None = self._files.read_json(names.FINISHED).get("best_score")
        return score

    def is_finished(self) -> bool:
        """Return whether training has finished and left a model."""
        return self.finished_at() is not None

    def reopen(self, config: Config) -> None:
        """Prepare a run for resuming: mark it unfinished, and write the configuration."""
        remove_run_leftovers(self.path)
        remove_listed(self.path / names.FINISHED)
        self.save_config(config)

    def check_files(self) -> None:
        """Check that no file of the run, or of its reverse model, is missing or damaged. Raises
        UserError: a file is missing or damaged."""
        for run in (self, self.reverse):
            if not (run.path / names.FINISHED).exists():
                # A user may delete the file to mark the run as unfinished. The manifest must then
                # not list the file.
                remove_listed(run.path / names.FINISHED)
            if run.config_path.exists():
                check_files(run.path)
            if (run.path / names.SETS).exists():
                check_files(run.path / names.SETS)

    def check_no_links(self) -> None:
        """Check that no file or folder that training appends to is a symbolic link, which could
        lead outside the run directory. Raises UserError: a file or folder is a link."""
        for name in names.APPENDED:
            path = self.path / name
            if path.is_symlink():
                raise UserError(
                    f"{path}: a link to {path.readlink()}, but training writes inside its run "
                    "directory only; replace the link by its target, or choose another --run-dir"
                )

    def write_environment(self, device: torch.device | str) -> None:
        """Write `environment.json`: versions, hardware, git commit of the code, and the command of
        this process."""
        write_listed_json(self.path / names.ENVIRONMENT, describe_environment(sys.argv, device))

    @cached_property
    def environment(self) -> dict[str, Any] | None:
        """The environment that `write_environment` wrote; None if there is no such file. Raises
        UserError: the file is damaged."""
        if not (self.path / names.ENVIRONMENT).exists():
            return None
        return self._files.read_json(names.ENVIRONMENT)

    @cached_property
    def validations(self) -> list[Validation]:
        """The validations of training in order; empty if their file is missing or unreadable."""
        if not self.metrics_path.exists():
            return []
        try:
            return parse_validations(self._files.read(names.METRICS))
        except UserError as error:
            log.warning("%s; the run has no learning curve", error)
            return []


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}
