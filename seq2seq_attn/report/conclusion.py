"""The finding of an evaluation in a sentence or two, computed from its scores.

It compares the shortest and the longest sentences, and says so where chance explains a difference. Buckets with too few
sentence pairs are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from seq2seq_attn.evaluation.arms import ArmScore
from seq2seq_attn.evaluation.scores import BucketScores, SetScores, SystemScore, bucket_measures
from seq2seq_attn.metrics.bleu import TITLES, MeasureName

CLEAR_P = 0.025
"""differences with a smaller p are clear: of sacreBLEU's paired bootstrap, this is about 0.05 in a two-sided test"""
CLEAR_NOTE = f"a difference is clear if p < {CLEAR_P:g} (about 0.05 in a two-sided test)"
_FIXED = ("fixed", "initial")
"""attention variants that hand the decoder one vector"""


class _Score(NamedTuple):
    """One run or arm on some sentences."""

    value: float
    low: float
    high: float
    p_value: float | None
    """of the difference to the first; None for the first itself"""
    least: float
    most: float
    """of the seeds"""


@dataclass(frozen=True)
class _Part:
    """Some sentences, and the scores of all runs or arms on them."""

    sentences: str
    scores: list[_Score]

    def difference(self, place: int) -> float:
        return self.scores[place].value - self.scores[0].value

    def is_clear(self, place: int) -> bool:
        """Whether neither the choice of sentences nor the seeds explain the difference to the first."""
        first, other = self.scores[0], self.scores[place]
        if other.p_value is None or other.p_value >= CLEAR_P or not _is_visible(self.difference(place)):
            return False
        have_seeds = first.least < first.most and other.least < other.most
        return not have_seeds or other.least > first.most or other.most < first.least


def conclude(scores: SetScores, *, unit: str = "source tokens", attentions: Sequence[str] = ()) -> str:
    """What the scores of one test set show.

    Args:
        unit: what lengths are counted in.
        attentions: the attention variant of each run, so that two runs can be called the attention model and the fixed
            vector; empty: unknown.
    """
    measure = bucket_measures(list(scores.scores))[0]
    names = _names(scores, attentions)
    overall = _part(f"all {scores.num_pairs:,} sentence pairs", scores, measure)
    solid = [row for row in scores.buckets if not row.bucket.is_thin]
    ends = [_part(row.bucket.label, row, measure) for row in (solid[0], solid[-1])] if len(solid) > 1 else []
    title = TITLES[measure]
    if len(names) == 1:
        return _one(names[0], title, unit, overall, ends)
    if len(names) == 2:
        return _two(names, title, unit, overall, ends)
    if not ends:
        return _many(names, title, overall, overall.sentences, lowest_is_best=measure == "ter")
    longest = f"sentences of {ends[1].sentences} {unit}"
    return _many(names, title, ends[1], longest, lowest_is_best=measure == "ter")


def _is_visible(difference: float) -> bool:
    """Whether it is more than 0.0 with one decimal."""
    return abs(difference) >= 0.05


def _names(scores: SetScores, attentions: Sequence[str]) -> list[str]:
    if scores.arms:
        names = [arm.name for arm in scores.arms]
        attentions = [attentions[arm.runs[0]] for arm in scores.arms] if attentions else ()
    else:
        names = list(scores.systems)
    are_fixed = [attention in _FIXED for attention in attentions]
    if len(names) == len(are_fixed) == 2 and are_fixed[0] != are_fixed[1]:
        kinds = ["the fixed vector" if is_fixed else "the attention model" for is_fixed in are_fixed]
        return [f"{kind} ({name})" for kind, name in zip(kinds, names, strict=True)]
    return names


def _part(sentences: str, scored: SetScores | BucketScores, measure: MeasureName) -> _Part:
    of_arms = scored.arm_scores.get(measure)
    found: Sequence[ArmScore | SystemScore] = of_arms or scored.scores[measure]
    return _Part(sentences, [_score(one) for one in found])


def _score(score: ArmScore | SystemScore) -> _Score:
    interval = score.interval
    least, most = interval.value, interval.value
    if isinstance(score, ArmScore):
        least, most = score.spread.min, score.spread.max
    p_value = score.bootstrap.p_value if score.bootstrap else None
    return _Score(interval.value, interval.low, interval.high, p_value, least, most)


def _one(name: str, title: str, unit: str, overall: _Part, ends: Sequence[_Part]) -> str:
    if not ends:
        return f"{name} scores {_with_interval(overall.scores[0], title)} on {overall.sentences}."
    short, long = (part.scores[0] for part in ends)
    labels = [part.sentences for part in ends]
    scores = f"{short.value:.1f} {title} on sentences of {labels[0]} {unit}, {long.value:.1f} on those of {labels[1]}"
    is_clear = short.low > long.high or long.low > short.high
    if is_clear and _is_visible(short.value - long.value):
        return f"{name} scores {scores}."
    overlap = "" if is_clear else ", and the intervals overlap"
    return f"The length of a sentence makes no clear difference: {name} scores {scores}{overlap}."


def _two(names: Sequence[str], title: str, unit: str, overall: _Part, ends: Sequence[_Part]) -> str:
    if not any(_is_visible(part.difference(1)) for part in (overall, *ends)):
        return f"{names[0]} and {names[1]} score the same: {overall.scores[0].value:.1f} {title}."
    clear = [part for part in ends if part.is_clear(1)]
    if not clear:
        return _two_overall(names, title, overall, has_lengths=bool(ends))
    told = clear[-1]  # the longest sentences, if the runs differ there
    other = ends[0] if told is ends[1] else ends[1]
    first, second = told.scores
    sentence = (
        f"On sentences of {told.sentences} {unit} {names[0]} scores {first.value:.1f} {title}, "
        f"{names[1]} {second.value:.1f}; on those of {other.sentences} "
    )
    difference = f"{abs(other.difference(1)):.1f}"
    if not _is_visible(other.difference(1)):
        return f"{sentence}they differ by less than 0.1."
    if not other.is_clear(1):
        return f"{sentence}the difference ({difference}) is not clear."
    same_sign = (other.difference(1) > 0) == (told.difference(1) > 0)
    return f"{sentence}they differ by {difference}{'' if same_sign else ', the other way round'}."


def _two_overall(names: Sequence[str], title: str, overall: _Part, *, has_lengths: bool) -> str:
    first, second = overall.scores
    scores = f"{names[0]} scores {_with_interval(first, title)}, {names[1]} {_with_interval(second, '')}"
    if not overall.is_clear(1):
        return f"No clear difference: on {overall.sentences} {scores}."
    lengths = "; they differ clearly neither on the shortest sentences nor on the longest" if has_lengths else ""
    return f"On {overall.sentences} {scores}{lengths}."


def _many(names: Sequence[str], title: str, part: _Part, where: str, *, lowest_is_best: bool) -> str:
    order = sorted(range(len(names)), key=lambda place: part.scores[place].value, reverse=not lowest_is_best)
    best, worst = order[0], order[-1]
    num_clear = sum(part.is_clear(place) for place in range(1, len(names)))
    verb = "differs" if num_clear == 1 else "differ"
    return (
        f"On {where} {names[best]} is best with {part.scores[best].value:.1f} {title} and {names[worst]} worst with "
        f"{part.scores[worst].value:.1f}; {num_clear or 'none'} of the {len(names) - 1} others {verb} clearly from "
        f"{names[0]}."
    )


def _with_interval(score: _Score, title: str) -> str:
    return f"{score.value:.1f}{title and ' '}{title} [{score.low:.1f}, {score.high:.1f}]"
