"""Systems under evaluation: a single run or an ensemble of runs, with the validations of their
training."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from seq2seq_attn.config import Config, SearchConfig
from seq2seq_attn.files import finite
from seq2seq_attn.run import Run
from seq2seq_attn.run.history import Validation
from seq2seq_attn.runtime.device import Precision, resolve_device, translation_precision
from seq2seq_attn.search.base import find_search
from seq2seq_attn.translate.load import load
from seq2seq_attn.translate.translator import Translator

ENSEMBLE_HYPS = "ensemble"
"""The folder of an ensemble's hypotheses, in its first member's `hyps/` or beside those of the
members."""
_REPORTED = {"beam_size", "length_penalty", "max_length_ratio"}
"""options that a report always names"""
_SHORT_NAMES = {
    "method": "",
    "beam_size": "beam",
    "length_penalty": "penalty",
    "max_length_ratio": "ratio",
    "max_length_extra": "extra",
    "coverage_penalty": "coverage",
    "no_repeat_ngram": "ngram",
}
"""the words of file names for options of the search"""
_MAX_NAME = 30
"""A longer list of members widens every table; the JSON has all of them."""


@dataclass(frozen=True)
class System:
    """One run, or an ensemble, of which the first run gives the search settings and keeps the
    hypotheses. The model is loaded when it is first needed."""

    name: str
    runs: Sequence[Run]
    members: Sequence[str] = ()
    """the names of an ensemble's runs; empty: a single run"""
    _: KW_ONLY
    options: Mapping[str, Any] = field(default_factory=dict)
    """of the search, on top of the runs' own"""
    device: str = "auto"
    precision: str = "auto"

    @property
    def is_ensemble(self) -> bool:
        """Whether several runs translate as one."""
        return bool(self.members)

    @property
    def config(self) -> Config:
        """The configuration of the first run."""
        return self.runs[0].config

    @property
    def search(self) -> SearchConfig:
        """The options of the search, with the first run's own where none are named."""
        return find_search(self.config.search, self.options)[1]

    @property
    def resolved_precision(self) -> Precision:
        """The precision of the products. Raises UsageError: an unknown device or precision."""
        return translation_precision(self.precision, resolve_device(self.device))

    @property
    def variation(self) -> str:
        """The differences from the first run's own search and from fp32, for file names:
        `.beam1.penalty0.5.bf16`."""
        default = decisive_options(find_search(self.config.search, {})[1])
        variation = ""
        for key, value in decisive_options(self.search).items():
            if default.get(key) != value:
                variation += f".{_SHORT_NAMES.get(key, key)}{_short_text(value)}"
        if self.resolved_precision != "fp32":
            variation += f".{self.resolved_precision}"
        return variation

    @property
    def hyps_dir(self) -> Path:
        """Where the first run keeps the system's translations."""
        return self.runs[0].hyps_dir / (ENSEMBLE_HYPS if self.is_ensemble else "")

    @cached_property
    def translator(self) -> Translator:
        """The loaded model."""
        return load(self.runs, self.device, precision=self.precision)

    @property
    def model_hash(self) -> str | list[str]:
        """The hash of the loaded model; of an ensemble, those of all models."""
        hashes = [info.sha256 for info in self.translator.infos]
        return hashes if self.is_ensemble else hashes[0]

    def history(self) -> tuple[dict[str, Any], list[Validation]]:
        """The configuration as plain values, and the validations of the training; an ensemble has
        neither."""
        if self.is_ensemble:
            return {}, []
        return self.config.model_dump(mode="json"), self.runs[0].validations

    def describe(self) -> dict[str, Any]:
        """Which run, of what, from which seed and commit, and how it translates. An ensemble has no
        seed, training or directory of its own."""
        described: dict[str, Any] = {"name": self.name}
        attention = self.config.model.attention.name
        if self.is_ensemble:
            described["members"] = list(self.members)
            if len({run.config.model.attention.name for run in self.runs}) > 1:
                attention = "several"
        else:
            run = self.runs[0]
            described["path"] = str(run.path)
            described["config"] = self.config.name
            described["seed"] = self.config.seed
            described["model"] = finite(self.translator.infos[0].about)  # JSON has no infinity
            described["training_environment"] = run.environment
        described["attention"] = attention
        described["has_attention"] = self.translator.has_attention
        described["lowercases"] = self.config.data.tokenizer.lowercase
        described["search"] = self._reported_options()
        described["precision"] = self.resolved_precision
        return described

    def _reported_options(self) -> dict[str, Any]:
        """The options of the search that a report names: a few always, the others where they have
        been changed."""
        defaults = decisive_options(SearchConfig())
        defaults["max_length_extra"] = self.search.max_length_extra
        reported = {}
        for key, value in decisive_options(self.search).items():
            if key in _REPORTED or value != defaults.get(key):
                reported[key] = value
        return reported


def make_ensemble(systems: Sequence[System]) -> System:
    """Single runs as one system, named `ensemble of A, B`, or by their number if that is long."""
    names = [system.name for system in systems]
    members = ", ".join(names)
    if len(members) > _MAX_NAME:
        members = f"{len(names)} runs"
    runs = [system.runs[0] for system in systems]
    return replace(systems[0], name=f"ensemble of {members}", runs=runs, members=names)


def _short_text(value: object) -> str:
    """The value of an option, for a file name."""
    if isinstance(value, int | float):
        return f"{value:g}"
    return re.sub(r"\W+", "-", str(value)).strip("-")[:_MAX_NAME]


def decisive_options(search: SearchConfig) -> dict[str, Any]:
    """The options that decide the best translation."""
    return search.model_dump(mode="json", exclude={"batch_size", "n_best"})
