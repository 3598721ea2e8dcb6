"""The lines of a report that say how it was made, and which of its scores mean little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seq2seq_attn.evaluation.scores import BucketScores, SetScores


def search_lines(description: Mapping[str, Any]) -> list[str]:
    """How a system searched; none of saved hypotheses."""
    if not (search := description.get("search")):
        return []
    shown = {name.replace("_", " "): value for name, value in search.items() if name != "max_length_ratio"}
    settings = [f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in shown.items()]
    if (precision := description.get("precision", "fp32")) != "fp32":
        settings.append(precision)
    return [f"{description['name']}: {', '.join(settings)}"]


def caution_lines(description: Mapping[str, Any]) -> list[str]:
    """Whether a system's cased scores mean little."""
    if not description.get("lowercases"):
        return []
    return [f"{description['name']} lower-cases its output, so its cased scores are too low; use the lower-cased ones"]


def too_short_lines(scored: Sequence[SetScores], unit: str) -> list[str]:
    """Where BLEU says little, because few references have four tokens."""

    def is_too_short(part: SetScores | BucketScores) -> bool:
        return any(of_arms[0].is_too_short for of_arms in part.scores.values())

    where = []
    for scores in scored:
        short = [row.bucket.label for row in scores.buckets if is_too_short(row)]
        where += [scores.name] if is_too_short(scores) else [f"{scores.name}, {unit} {label}" for label in short]
    if not where:
        return []
    return [
        f"fewer than a tenth of the references have four tokens in {'; '.join(where)}: BLEU counts little else there, "
        "and is 0 if none has; see --metric exact or --metric chrf"
    ]


def provenance(environment: Mapping[str, Any]) -> str:
    """Versions, commit, machine and date."""
    git = environment.get("git")
    commit = f", commit {git['commit'][:12]}{' with changes' if git['is_dirty'] else ''}" if git else ""
    packages = environment["packages"]
    return (
        f"seq2seq-attn {environment['seq2seq_attn']}{commit}, sacreBLEU {packages['sacrebleu']}, "
        f"torch {packages['torch']}, {environment['device_name']}, {environment['written_at']}"
    )
