"""An ensemble under evaluation: several runs that translate as one, scored beside its members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from seq2seq_attn.config import Config
from seq2seq_attn.evaluation.attention import AttentionAnalyzer
from seq2seq_attn.evaluation.attention_scores import AttentionAnalysis
from seq2seq_attn.evaluation.runs import Decoding, EvaluatedRun, hash_model
from seq2seq_attn.evaluation.texts import RunTexts
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.text.tokenizers.vectors import FloatArray
from seq2seq_attn.translate.translator import Translator, load

ENSEMBLE_HYPS = "ensemble"
"""The folder of an ensemble's hypotheses, in its first member's `hyps/` or beside those of the members."""
_MAX_NAME = 30
"""A longer list of members widens every table; the JSON has all of them."""


class EvaluatedEnsemble(EvaluatedRun):
    """Several runs as one. The first run gives the search settings and keeps the hypotheses."""

    def __init__(
        self,
        runs: Sequence[RunDir],
        configs: Sequence[Config],
        names: Sequence[str],
        decoding: Decoding,
        *,
        hyps_dir: Path | None,
        keep_maps: bool = False,
    ) -> None:
        """`names` are those of the members; the rest as for `EvaluatedRun`."""
        super().__init__(runs[0], configs[0], decoding, hyps_dir=hyps_dir, keep_maps=keep_maps)
        self._runs = list(runs)
        self._names = list(names)
        self._attentions = {config.model.attention.name for config in configs}

    @property
    def name(self) -> str:
        """`ensemble of A, B`, or the number of members if that is long."""
        listed = ", ".join(self._names)
        return f"ensemble of {listed if len(listed) <= _MAX_NAME else f'{len(self._names)} runs'}"

    def describe(self) -> dict[str, Any]:
        """The members, and how they translated together. An ensemble has no seed, training or directory of its own."""
        first = super().describe()
        return {
            "members": self._names,
            "attention": next(iter(self._attentions)) if len(self._attentions) == 1 else "several",
            **{key: first[key] for key in ("lowercases", "search", "precision", "seconds", "is_reused")},
        }

    def texts(self) -> RunTexts:
        """The translated texts, without configuration and training history."""
        return replace(super().texts(), config={}, validations=())

    def analyze(self, analyzer: AttentionAnalyzer, hypotheses: Sequence[str]) -> AttentionAnalysis:
        """From the texts alone: the attention analysis needs forced decoding, which takes one run."""
        return analyzer.analyze(hypotheses)

    @property
    def _own_hyps_dir(self) -> Path:
        return self._run.hyps_dir / ENSEMBLE_HYPS

    @property
    def _label(self) -> str:
        return self.name

    @cached_property
    def _translator(self) -> Translator:
        paths = [run.path for run in self._runs]
        return load(paths, self._decoding.device, precision=self._decoding.precision)

    @cached_property
    def _model_hash(self) -> list[str]:
        return [hash_model(run) for run in self._runs]

    def _summaries(self, lines: Sequence[str]) -> FloatArray | None:
        return None
