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
"""The name of the folder with an ensemble's hypotheses. The folder is inside `hyps/` of the first
run, or inside the folder of hypotheses beside a report."""
_REPORTED = {"beam_size", "length_penalty", "max_length_ratio"}
"""options of the search that the data of a report always include"""
_SHORT_NAMES = {
    "method": "",
    "beam_size": "beam",
    "length_penalty": "penalty",
    "max_length_ratio": "ratio",
    "max_length_extra": "extra",
    "coverage_penalty": "coverage",
    "no_repeat_ngram": "ngram",
}
"""the words that stand for options of the search in file names"""
_MAX_NAME = 30
"""The most characters of an option's value in a file name, and of the members' names in the name of
an ensemble. Longer names would widen every table; the JSON lists all members."""


@dataclass(frozen=True)
class System:
    """A single run, or an ensemble of runs.

    The search has the settings of the first run, with changes by `options`. Translations are saved
    in the first run. The models are loaded when `translator` is first read.
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
        """Return the options of the first run's search, changed by `options`."""
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
        """Return the part of a file name that tells how the system differs from the settings of the
        first run: in options of the search, the precision and a glossary. An example is
        `.beam1.penalty0.5.bf16`."""
        _, configured_search = find_search(self.config.search)
        configured = decisive_options(configured_search)
        variation = ""
        for key, value in decisive_options(self.search).items():
            if configured.get(key) != value:
                variation += f".{_SHORT_NAMES.get(key, key)}{_short_text(value)}"
        if self.resolved_precision != "fp32":
            variation += f".{self.resolved_precision}"
        if self.glossary:
            variation += ".glossary"
        return variation

    @property
    def hyps_dir(self) -> Path:
        """Return the folder of the first run in which the system's translations are saved."""
        hyps_dir = self.runs[0].hyps_dir
        return hyps_dir / ENSEMBLE_HYPS if self.is_ensemble else hyps_dir

    @cached_property
    def translator(self) -> Translator:
        """Load the models of all runs."""
        return load(self.runs, self.device, precision=self.precision)

    @property
    def model_hash(self) -> str | list[str]:
        """Return the hash of a single run's model, or a list with the hashes of all models of an
        ensemble."""
        hashes = [info.sha256 for info in self.translator.infos]
        return hashes if self.is_ensemble else hashes[0]

    def history(self) -> tuple[JsonObject, list[Validation]]:
        """Return the run's configuration as plain values, and the validations of its training.

        For an ensemble, the configuration and the validations are empty.
        """
        if self.is_ensemble:
            return {}, []
        return self.config.model_dump(mode="json"), self.runs[0].validations

    def describe(self) -> JsonObject:
        """Describe the system for reports, as plain values: the run with its seed and training, or
        the members of an ensemble; the attention; and the search."""
        described: JsonObject = {"name": self.name}
        attentions = {run.config.model.attention.name for run in self.runs}
        attention = "several" if len(attentions) > 1 else self.config.model.attention.name
        if self.is_ensemble:
            described["members"] = list(self.members)
        else:
            run = self.runs[0]
            described |= {
                "path": str(run.path),
                "config": self.config.name,
                "seed": self.config.seed,
                "model": finite(self.translator.infos[0].about),  # JSON has no infinity
                "training_environment": run.environment,
            }
        return described | {
            "attention": attention,
            "has_attention": self.translator.has_attention,
            "lowercases": self.config.data.tokenizer.lowercase,
            "search": self._reported_options(),
            "precision": self.resolved_precision,
            "glossary": [list(entry) for entry in self.glossary],
        }

    def _reported_options(self) -> JsonObject:
        """Return the options of the search for a report: those in `_REPORTED`, and all options that
        differ from their defaults."""
        defaults = decisive_options(SearchConfig())
        reported = {}
        for key, value in decisive_options(self.search).items():
            if key in _REPORTED or value != defaults.get(key):
                reported[key] = value
        return reported


def make_ensemble(systems: Sequence[System]) -> System:
    """Return an ensemble of single runs.

    The name is `ensemble of A, B`, or `ensemble of N runs` if the list of names is long.
    """
    members = [system.name for system in systems]
    listed = ", ".join(members)
    if len(listed) > _MAX_NAME:
        listed = f"{len(members)} runs"
    runs = [system.runs[0] for system in systems]
    return replace(systems[0], name=f"ensemble of {listed}", runs=runs, members=members)


def _short_text(value: object) -> str:
    """Return the value of an option as text for a file name."""
    if isinstance(value, int | float):
        return f"{value:g}"
    return re.sub(r"\W+", "-", str(value)).strip("-")[:_MAX_NAME]


def decisive_options(search: SearchConfig) -> JsonObject:
    """Return the options of the search that can change the best translation."""
    return search.model_dump(mode="json", exclude={"batch_size", "n_best"})
