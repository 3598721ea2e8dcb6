"""What is evaluated: a run, or several runs that translate as one (an ensemble)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from seq2seq_attn.config import Config, SearchConfig
from seq2seq_attn.files import sha256_of
from seq2seq_attn.metrics.bleu import TITLES
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.runtime.device import resolve_device
from seq2seq_attn.runtime.precision import Precision, translation_precision
from seq2seq_attn.search.options import AS_CONFIGURED, SearchOptions
from seq2seq_attn.translate.translator import Translator, load

ENSEMBLE_HYPS = "ensemble"
"""The folder of an ensemble's hypotheses, in its first member's `hyps/` or beside those of the members."""
_VARIATION = {
    "beam_size": "beam",
    "length_penalty": "penalty",
    "max_length_ratio": "ratio",
    "max_length_extra": "extra",
    "coverage_penalty": "coverage",
    "no_repeat_ngram": "ngram",
}
"""the words of file names for search settings"""
_MAX_NAME = 30
"""A longer list of members widens every table; the JSON has all of them."""


@dataclass(frozen=True)
class Decoding:
    """How systems translate."""

    search: SearchOptions = AS_CONFIGURED
    device: str = "auto"
    precision: str = "auto"
    reuse_hypotheses: bool = False
    """take saved translations if the same model made them of the same lines in the same way"""
    show_progress: bool = False

    def variation(self, own: SearchConfig) -> str:
        """The differences from a run's own search settings and from fp32, for file names: `.beam1.penalty0.5.bf16`."""
        search = self.search.over(own)
        changed = {key: getattr(search, key) for key in _VARIATION if getattr(search, key) != getattr(own, key)}
        precision = translation_precision(self.precision, resolve_device(self.device))
        parts = [f".{_VARIATION[key]}{value:g}" for key, value in changed.items()]
        return "".join([*parts, *([f".{precision}"] if precision != "fp32" else [])])


DEFAULT_DECODING = Decoding()


@dataclass(frozen=True)
class System:
    """One run, or an ensemble, of which the first run gives the search settings and keeps the hypotheses. The model is
    loaded when it is first needed."""

    name: str
    runs: Sequence[RunDir]
    configs: Sequence[Config]
    decoding: Decoding = DEFAULT_DECODING
    members: Sequence[str] = ()
    """the names of an ensemble's runs; empty: a single run"""

    @property
    def is_ensemble(self) -> bool:
        """Whether several runs translate as one."""
        return bool(self.members)

    @property
    def config(self) -> Config:
        """The configuration of the first run."""
        return self.configs[0]

    @property
    def search(self) -> SearchOptions:
        """The search options, with the first run's own settings where none are named."""
        return self.decoding.search.over(self.config.search)

    @property
    def precision(self) -> Precision:
        """The precision of the products."""
        return translation_precision(self.decoding.precision, resolve_device(self.decoding.device))

    @property
    def label(self) -> str:
        """The name in progress bars."""
        return self.name if self.is_ensemble else self.runs[0].path.name

    @property
    def hyps_dir(self) -> Path:
        """Where the first run keeps the system's translations."""
        own = self.runs[0].hyps_dir
        return own / ENSEMBLE_HYPS if self.is_ensemble else own

    @cached_property
    def _loaded(self) -> tuple[Translator, list[str], list[dict[str, str]]]:
        """The model with the hashes and the metadata of the very files that it was read from: training may replace them
        at any time. Raises UserError if a model is missing."""
        while True:
            metadata = [run.best_metadata() for run in self.runs]
            hashes = [sha256_of(run.model_path) for run in self.runs]
            paths = [run.path for run in self.runs]
            translator = load(paths, self.decoding.device, precision=self.decoding.precision)
            after = [run.best_metadata() for run in self.runs], [sha256_of(run.model_path) for run in self.runs]
            if after == (metadata, hashes):
                return translator, hashes, metadata

    @property
    def translator(self) -> Translator:
        """The loaded model."""
        return self._loaded[0]

    @property
    def model_hash(self) -> str | list[str]:
        """The hash of the model; of an ensemble, those of all models."""
        hashes = self._loaded[1]
        return hashes if self.is_ensemble else hashes[0]

    def describe(self) -> dict[str, Any]:
        """Which run, of what, from which seed and commit, and how it translates. An ensemble has no seed, training or
        directory of its own."""
        how = {"search": _search_values(self.search), "precision": self.precision}
        lowercases = self.config.data.tokenizer.lowercase
        if self.is_ensemble:
            attentions = {config.model.attention.name for config in self.configs}
            attention = attentions.pop() if len(attentions) == 1 else "several"
            members = list(self.members)
            return {"name": self.name, "members": members, "attention": attention, "lowercases": lowercases, **how}
        [run] = self.runs
        return {
            "name": self.name,
            "path": str(run.path),
            "config": self.config.name,
            "attention": self.config.model.attention.name,
            "seed": self.config.seed,
            "lowercases": lowercases,
            "model": _with_numbers(self._loaded[2][0]),
            "training_environment": run.environment(),
            **how,
        }


def make_ensemble(runs: Sequence[System]) -> System:
    """The runs as one system, named `ensemble of A, B`, or by their number if that is long."""
    names = [run.name for run in runs]
    listed = ", ".join(names)
    return System(
        f"ensemble of {listed if len(listed) <= _MAX_NAME else f'{len(names)} runs'}",
        [run.runs[0] for run in runs],
        [run.config for run in runs],
        runs[0].decoding,
        names,
    )


def _search_values(search: SearchOptions) -> dict[str, Any]:
    """The settings that decide the translations."""
    values = search.model_dump(include={"beam_size", "length_penalty", "max_length_ratio"})
    more = search.model_dump(include={"coverage_penalty", "no_repeat_ngram"})
    return values | {key: value for key, value in more.items() if value}


def _with_numbers(metadata: Mapping[str, str]) -> dict[str, int | float | str]:
    """The numbers among the metadata as numbers: the header of a safetensors file holds strings only."""
    scores = dict.fromkeys(("perplexity", *TITLES), float)
    kinds: dict[str, type[int] | type[float]] = {"update": int, "epoch": int, **scores}
    values: dict[str, int | float | str] = dict(metadata)
    for key in kinds.keys() & metadata.keys():
        try:
            value = kinds[key](metadata[key])
        except ValueError:
            continue
        if math.isfinite(value):  # JSON has no infinity
            values[key] = value
    return values
