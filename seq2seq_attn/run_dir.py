"""The run directory: written by training, read by everything else. It needs nothing outside itself.

    config.yaml  environment.json  corpus.json (hashes of the text)  finished.json (training has finished)
    model.safetensors (best)  last/ (for a resume)  manifest.json (the SHA-256 of all these files)
    <side>.tokenizer.json  <side>.sentencepiece.model  <side>.vocab
    train.log  metrics.jsonl  TensorBoard events  hyps/<split>.txt  report.json  report.md
    reverse/ (a run directory with the model of the other direction, where an objective trains one)

Tensors are safetensors; the rest is plain text, JSON or YAML. There are no pickles. Writes are
atomic.
"""

from __future__ import annotations

import importlib
import logging
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from seq2seq_attn.config import Config, ModelConfig, dump_config
from seq2seq_attn.config.load import RUN_CONFIG, load_run_config
from seq2seq_attn.data.store import RUN_CORPUS, PreparedCorpus, vocab_path
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import (
    MANIFEST,
    check_files,
    list_files,
    read_listed_json,
    remove_listed,
    write_listed,
    write_listed_json,
)
from seq2seq_attn.model.weights import Saved, read_tensors, write_tensors
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.text.tokenizers.base import SIDES, VECTORS, Side, Tokenizer
from seq2seq_attn.text.tokenizers.factory import load_tokenizer
from seq2seq_attn.text.tokenizers.several import vector_sizes
from seq2seq_attn.text.vocab import Vocab

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from seq2seq_attn.model.seq2seq import Seq2Seq

_MODEL, _FINISHED, _ENVIRONMENT = "model.safetensors", "finished.json", "environment.json"
_LOG, _METRICS, _LAST = "train.log", "metrics.jsonl", "last"
REVERSE = "reverse"
HUB = "hf:"  # begins the name of a run on the Hugging Face hub
LOCK = ".train.lock"
"""locked while training writes to the run; the file itself stays"""
_APPENDED = (_LOG, _METRICS, LOCK, _LAST, REVERSE)
"""Training appends to these, or writes in them; every other file is replaced as a whole."""
_TEXT_FILES = ("*.tokenizer.json", "*.sentencepiece.model", "*.vocab")
_LISTED = (RUN_CONFIG, _MODEL, _FINISHED, _ENVIRONMENT, RUN_CORPUS, *_TEXT_FILES)
"""the files that the manifest lists"""
# Everything that a run writes; `overwrite` removes these and nothing else.
_OWN_FILES = (
    *(*_LISTED, MANIFEST, _LOG, _METRICS, _LAST, "hyps", REVERSE),
    *("report.json", "report.md", "report.*.json", "report.*.md"),
    *("*-by-length*.png", "*-by-length*.svg", "*-by-length*.pdf"),
    *("events.out.tfevents.*", ".*.tmp"),
)

log = logging.getLogger(__name__)


class ModelInfo(NamedTuple):
    """What is known of a model that was loaded."""

    about: dict[str, Any]
    """update, epoch, and the scores of the validation that chose it"""
    sha256: str
    """of its file"""


class RunDir:
    """A run directory. Creating the object touches no file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config_path = self.path / RUN_CONFIG
        self.model_path = self.path / _MODEL
        """the best model"""
        self.last_dir = self.path / _LAST
        self.state_path = self.last_dir / "state.safetensors"
        """the state that `--resume` needs (`train/checkpoint.py`)"""
        self.metrics_path = self.path / _METRICS
        """the training history, one JSON object per line"""
        self.log_path = self.path / _LOG
        """the log of training, in words"""
        self.hyps_dir = self.path / "hyps"
        """the folder with `evaluate`'s translations of test sets"""

    def __repr__(self) -> str:
        return f"RunDir({str(self.path)!r})"

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False) -> RunDir:
        """Create an empty run directory. With `overwrite`, the files of an earlier run are removed
        first. Raises UsageError as `check_free`."""
        run = cls(path)
        run.check_free(overwrite=overwrite)
        files = {old for pattern in _OWN_FILES for old in run.path.glob(pattern)}
        for old in sorted(
            files, key=lambda path: path.name == RUN_CONFIG
        ):  # last: it makes the folder a run
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        run.path.mkdir(parents=True, exist_ok=True)
        return run

    def check_free(self, *, overwrite: bool) -> None:
        """Check that a run may be written here. Raises UsageError: there is a run, and `overwrite`
        is false; or something else."""
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
        """Whether the existing directory is empty, apart from a lock file."""
        return all(path.name == LOCK for path in self.path.iterdir())

    @property
    def reverse(self) -> RunDir:
        """The run directory of the reverse model, which training may have made."""
        return RunDir(self.path / REVERSE)

    # ---- configuration, text ----

    def config(self) -> Config:
        """The full configuration of the run. Raises UserError as `load_run_config`."""
        return load_run_config(self.path)

    def save_config(self, config: Config) -> None:
        """Write the full configuration."""
        write_listed(self.config_path, dump_config(config).encode())

    def save_text(self, prepared: PreparedCorpus, *, is_reverse: bool = False) -> None:
        """Copy the tokenizers and vocabularies of a prepared corpus, so that the run is
        self-contained, and the hashes of its text. `is_reverse`: the corpus's target is the run's
        source."""
        self.path.mkdir(parents=True, exist_ok=True)
        source, target = reversed(SIDES) if is_reverse else SIDES
        prepared.source_tokenizer.save(self.path, source)
        prepared.target_tokenizer.save(self.path, target)
        prepared.source_vocab.save(vocab_path(self.path, source))
        prepared.target_vocab.save(vocab_path(self.path, target))
        list_files(self.path, [path for pattern in _TEXT_FILES for path in self.path.glob(pattern)])
        write_listed_json(self.path / RUN_CORPUS, prepared.text_hashes(is_reverse=is_reverse))

    def text_hashes(self) -> dict[str, str]:
        """`PreparedCorpus.text_hashes` of the corpus that the run was trained on. Raises UserError
        if they are missing or damaged."""
        return read_listed_json(self.path / RUN_CORPUS)

    def text_files(self, side: Side) -> dict[str, str]:
        """The SHA-256 of the tokenizer and vocabulary files of a side, by name. Raises UserError if
        one is missing or damaged."""
        return check_files(self.path, prefix=f"{side}.")

    def tokenizer(self, side: Side) -> Tokenizer:
        """The tokenizer of a side. Raises UserError as `text_files`."""
        self.text_files(side)
        return load_tokenizer(self.path, side)

    def vocab(self, side: Side) -> Vocab:
        """The vocabulary of a side. Raises UserError as `text_files`."""
        self.text_files(side)
        return Vocab.load(vocab_path(self.path, side))

    # ---- the best model ----

    def save_best(self, state_dict: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
        """Write the best model so far: tensors by name, and JSON values about it (update, scores,
        ...). Raises UserError as `write_tensors`."""
        write_tensors(self.model_path, state_dict, about)

    def load_best(self) -> Saved:
        """The tensors of the best model, on the CPU, and the values about it. Raises UserError:
        there is none, or the file is damaged."""
        if not self.model_path.exists():
            reason = (
                "training has saved no model yet"
                if self.config_path.is_file()
                else "not a run directory"
            )
            raise UserError(
                f"{self.path}: no {_MODEL} ({reason}); train with `seq2seq train --run-dir "
                f"{self.path}`"
            )
        return read_tensors(self.model_path)

    def load_model(self, config: ModelConfig) -> tuple[Seq2Seq, ModelInfo]:
        """The best model, on the CPU. Sizes that do not match the configuration are rejected before
        they take memory. Raises UserError as `load_best`, or the model does not match this
        configuration and these vocabularies."""
        import torch

        from seq2seq_attn.model.build import build_model, model_without_weights

        sources = self.config().data.sources
        sizes: dict[str, Any] = {
            "num_source_ids": len(self.vocab("source")),
            "num_target_ids": len(self.vocab("target")),
            "vector_sizes": vector_sizes(self.tokenizer("source"))
            if VECTORS in sources
            else [None] * len(sources),
        }
        try:
            expected = model_without_weights(config, **sizes).state_dict()
        except UsageError as error:  # such as a variant that needs --import
            raise UsageError(f"{self.path}: {error}") from None
        saved = self.load_best()
        shapes, expected_shapes = (
            {name: t.shape for name, t in some.items()} for some in (saved.tensors, expected)
        )
        if shapes != expected_shapes:
            raise UserError(
                f"{self.model_path}: not the model of this run's {RUN_CONFIG} and vocabularies; "
                "copy the run again"
            )
        with torch.random.fork_rng(
            devices=[]
        ):  # building draws weights that are replaced right away
            model = build_model(config, **sizes, is_loaded=True)
        model.load_state_dict(saved.tensors)
        return model, ModelInfo(saved.values, saved.sha256)

    # ---- state, environment ----

    def mark_finished(self, values: Mapping[str, Any] | None = None) -> None:
        """Record that training has finished, with the time and the given JSON values."""
        write_listed_json(self.path / _FINISHED, {"finished_at": time.time(), **(values or {})})

    def finished_at(self) -> float | None:
        """When training finished, in seconds since 1970; None if it has not, or left no model."""
        if not self.model_path.is_file() or not (self.path / _FINISHED).is_file():
            return None
        try:
            return float(read_listed_json(self.path / _FINISHED)["finished_at"])
        except Exception as error:  # of any bytes
            reason = error if isinstance(error, UserError) else f"{self.path / _FINISHED}: damaged"
            log.warning("%s; the run counts as unfinished", reason)
            return None

    def is_finished(self) -> bool:
        """Whether training has finished and left a model."""
        return self.finished_at() is not None

    def reopen(self, config: Config) -> None:
        """Prepare a run for resuming: mark it unfinished, and write the configuration."""
        self.remove_leftovers()
        remove_listed(self.path / _FINISHED)
        self.save_config(config)

    def remove_leftovers(self) -> None:
        """Remove temporary files of a process that was killed, and all of a run that was not even
        begun."""
        has_draft = any(self.path.glob(f".{RUN_CONFIG}.*.tmp"))
        if has_draft and not self.config_path.exists():
            (self.path / MANIFEST).unlink(missing_ok=True)
        for pattern in (*(f".{name}.*.tmp" for name in (*_LISTED, MANIFEST)), f"{_LAST}/.*.tmp"):
            for leftover in self.path.glob(pattern):
                leftover.unlink()

    def check_files(self) -> None:
        """Check that no file of the run, or of the reverse model, is missing or damaged. Raises
        UserError: one is."""
        for run in (self, self.reverse):
            if not (run.path / _FINISHED).exists():
                remove_listed(run.path / _FINISHED)  # deleted by hand, which makes a run unfinished
            if run.config_path.exists():
                check_files(run.path)

    def check_no_links(self) -> None:
        """Check that the files that training appends to are not symbolic links to somewhere else.
        Raises UserError: a file is a link."""
        for path in (self.path / name for name in _APPENDED):
            if path.is_symlink():
                raise UserError(
                    f"{path}: a link to {path.readlink()}, but training writes inside its run "
                    "directory only; replace the link by its target, or choose another --run-dir"
                )

    def write_environment(self, command: Sequence[str], device: torch.device | str) -> None:
        """Write `environment.json`: versions, hardware, the code's git commit, the command."""
        write_listed_json(self.path / _ENVIRONMENT, describe_environment(command, device))

    def environment(self) -> dict[str, Any] | None:
        """The environment that `write_environment` wrote, if any. Raises UserError if it is
        damaged."""
        path = self.path / _ENVIRONMENT
        return read_listed_json(path) if path.exists() else None


def newest_run(runs_dir: str | Path = "runs") -> RunDir:
    """The run in a folder that finished last. Raises UserError: there is none."""
    runs = [RunDir(path) for path in sorted(Path(runs_dir).glob("*")) if path.is_dir()]
    finished = [
        (finished_at, run) for run in runs if (finished_at := run.finished_at()) is not None
    ]
    if finished:
        return max(finished, key=lambda pair: pair[0])[1]
    unfinished = [run for run in runs if run.model_path.is_file()]
    hint = (
        f"; {unfinished[-1].path} has a model but has not finished: name it to use it"
        if unfinished
        else ""
    )
    advice = (
        "train one with `seq2seq train -c quickstart` (minutes, no download), or name its directory"
    )
    raise UserError(f"{runs_dir}/: no finished run; {advice}{hint}")


def find_run(name: str | Path) -> Path:
    """The directory of a run. Of `hf:OWNER/NAME` or `hf:OWNER/NAME@REVISION`, its files are
    downloaded, or taken from the hub's cache, and checked against the manifest. Raises UserError:
    it cannot be downloaded, is damaged, or names another run, of this machine."""
    if not str(name).startswith(HUB):
        return Path(name)
    repository, _, revision = str(name).removeprefix(HUB).partition("@")
    with open_hub(f"{name}: cannot be downloaded") as hub:
        run = RunDir(
            hub.snapshot_download(
                repository, revision=revision or None, allow_patterns=[*_LISTED, MANIFEST]
            )
        )
    check_files(run.path)
    if run.config().search.scorers:
        raise UserError(
            f"{name}: its search.scorers name a run of this machine, which a downloaded run may not"
        )
    return run.path


@contextmanager
def open_hub(failure: str) -> Iterator[Any]:
    """The hub's library. Its errors, of which there are many kinds, become a UserError that begins
    with `failure`."""
    try:
        yield importlib.import_module("huggingface_hub")
    except ModuleNotFoundError as error:
        raise UserError(
            f"{error.name}: not installed; run: pip install 'seq2seq-attn[hub]'"
        ) from None
    except Exception as error:
        raise UserError(
            f"{failure}: {' '.join(str(error).split()) or type(error).__name__}"
        ) from error
