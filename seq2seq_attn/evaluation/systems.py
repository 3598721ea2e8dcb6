"""Systems under evaluation.

A system is a single run, or an ensemble of runs that translate together.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from seq2seq_attn.config import Config, SearchConfig
from seq2seq_attn.files import JsonObject, finite
from seq2seq_attn.run import Run
from seq2seq_attn.run.history import Validation
from seq2seq_attn.runtime.device import Precision, resolve_device, translation_precision
from seq2seq_attn.search.base import find_search
from seq2seq_attn.text.glossary import Glossary
from seq2seq_attn.translate.load import load
from seq2seq_attn.translate.translator import Translator

ENSEMBLE_HYPS = "ensemble"
"""The folder of an ensemble's hypotheses, inside the first member's `hyps/`, or inside the folder
of hypotheses beside a report."""
_REPORTED = {"beam_size", "length_penalty", "max_length_ratio"}
"""options of the search that a report always names"""
_SHORT_NAMES = {
    "method": "",
    "beam_size": "beam",
    "length_penalty": "penalty",
    "max_length_ratio": "ratio",
    "max_length_extra": "extra",
    "coverage_penalty": "coverage",
    "no_repeat_ngram": "ngram",
}
"""for options of the search, the words that stand for them in file names"""
_MAX_NAME = 30
"""The most characters in a list of an ensemble's members. A longer list would widen every table;
the JSON lists all members."""


@dataclass(frozen=True)
class System:
    """A single run, or an ensemble of runs.

    The search has the settings of the first run, and translations are saved in the first run. The
    model is loaded when it is first needed.
    """

    name: str
    runs: Sequence[Run]
    members: Sequence[str] = ()
    """the names of an ensemble's runs; empty for a single run"""
    _: KW_ONLY
    options: Mapping[str, Any] = field(default_factory=dict)
    """options of the search, which replace the options of the first run"""
    device: str = "auto"
    precision: str = "auto"
    glossary: Glossary = ()

    @property
    def is_ensemble(self) -> bool:
        """Tell whether the system is an ensemble."""
        return bool(self.members)

    @property
    def config(self) -> Config:
        """Return the configuration of the first run."""
        return self.runs[0].config

    @property
    def search(self) -> SearchConfig:
        """Return the options of the first run's search, with `options` in place of its own."""
        _, options = find_search(self.config.search, self.options)
        return options

    @property
    def resolved_precision(self) -> Precision:
        """Return the precision of matrix products.

        Raises:
            UsageError: The device or the precision is unknown.
        """
        return translation_precision(self.precision, resolve_device(self.device))

    @property
    def variation(self) -> str:
        """Return the words of a file name for all changes to the settings of the first run: options
        of the search, the precision and a glossary. An example is `.beam1.penalty0.5.bf16`."""
        _, configured = find_search(self.config.search)
        default = decisive_options(configured)
        variation = ""
        for key, value in decisive_options(self.search).items():
            if default.get(key) != value:
                variation += f".{_SHORT_NAMES.get(key, key)}{_short_text(value)}"
        if self.resolved_precision != "fp32":
            variation += f".{self.resolved_precision}"
        if self.glossary:
            variation += ".glossary"
        return variation

    @property
    def hyps_dir(self) -> Path:
        """Return the folder of the first run that keeps the system's translations."""
        return self.runs[0].hyps_dir / (ENSEMBLE_HYPS if self.is_ensemble else "")

    @cached_property
    def translator(self) -> Translator:
        """Load the model, once."""
        return load(self.runs, self.device, precision=self.precision)

    @property
    def model_hash(self) -> str | list[str]:
        """Return the hash of the loaded model, or for an ensemble the hashes of all its models."""
        hashes = [info.sha256 for info in self.translator.infos]
        return hashes if self.is_ensemble else hashes[0]

    def history(self) -> tuple[JsonObject, list[Validation]]:
        """Return the configuration as plain values, and the validations of training.

        Both are empty for an ensemble.
        """
        if self.is_ensemble:
            return {}, []
        return self.config.model_dump(mode="json"), self.runs[0].validations

    def describe(self) -> JsonObject:
        """Describe the system for reports, as plain values: the run, its seed, its training and the
        search. For an ensemble, the names of the members replace the run, seed and training."""
        described: JsonObject = {"name": self.name}
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
        described["glossary"] = [list(entry) for entry in self.glossary]
        return described

    def _reported_options(self) -> JsonObject:
        """Return the options of the search that a report names.

        These are the options in `_REPORTED`, and all options that differ from their defaults.
        """
        defaults = decisive_options(SearchConfig())
        reported = {}
        for key, value in decisive_options(self.search).items():
            if key in _REPORTED or value != defaults.get(key):
                reported[key] = value
        return reported


def make_ensemble(systems: Sequence[System]) -> System:
    """Return an ensemble of single runs.

    Its name is `ensemble of A, B`, or `ensemble of N runs` where the list of names is long.
    """
    names = [system.name for system in systems]
    members = ", ".join(names)
    if len(members) > _MAX_NAME:
        members = f"{len(names)} runs"
    runs = [system.runs[0] for system in systems]
    return replace(systems[0], name=f"ensemble of {members}", runs=runs, members=names)


def _short_text(value: object) -> str:
    """Return the value of an option as text for a file name."""
    if isinstance(value, int | float):
        return f"{value:g}"
    return re.sub(r"\W+", "-", str(value)).strip("-")[:_MAX_NAME]


def decisive_options(search: SearchConfig) -> JsonObject:
    """Return the options of the search that can change the best translation."""
    return search.model_dump(mode="json", exclude={"batch_size", "n_best"})
