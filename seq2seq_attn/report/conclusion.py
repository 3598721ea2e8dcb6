"""State the conclusion of an evaluation in one or two sentences, computed from its scores.

The conclusion compares arms on the shortest and on the longest sentences, and says where a
difference may be due to chance. An arm is a group of runs that differ only in their seed. A bucket
holds the sentence pairs of a range of lengths. Buckets with too few sentence pairs are ignored. If
the whole set has too few pairs, the conclusion does not compare arms.
"""

from collections.abc import Sequence
from typing import NamedTuple

from seq2seq_attn.evaluation.results import ArmScore, SetScores
from seq2seq_attn.metrics.significance import SIGNIFICANT_P
from seq2seq_attn.metrics.table import METRICS

LEARNT = 1.0
"""A model with less BLEU has not learnt to translate."""
VISIBLE = 0.05
"""Smaller differences are 0.0 when rounded to one decimal."""


class _Slice(NamedTuple):
    """The scores of all arms on a part of the sentences."""

    label: str
    scores: list[ArmScore]

    def value(self, arm: int) -> float:
        return self.scores[arm].interval.value

    def difference(self, arm: int = 1) -> float:
        return self.value(arm) - self.value(0)

    def is_visible(self, arm: int = 1) -> bool:
        """Tell whether the arm's difference from the first arm is at least 0.1 when rounded."""
        return abs(self.difference(arm)) >= VISIBLE

    def is_clear(self, arm: int = 1) -> bool:
        """Tell whether chance does not explain the difference.

        The corrected p must be small, and the interval of the difference must exclude 0.
        """
        test = self.scores[arm].bootstrap
        return test is not None and test.is_significant and self.is_visible(arm)


def clear_note(scores: SetScores) -> str:
    """Explain to readers of a report when a difference is clear, and what the test covers."""
    note = f"a difference is clear if p < {SIGNIFICANT_P:g} and its 95 % interval excludes 0"
    num_compared = len(scores.arms) - 1
    if num_compared > 1:
        note += f"; p has Holm's correction for {num_compared} comparisons"
    if scores.is_grouped:
        return f"{note}; p covers seeds and sentences"
    return f"{note}; p covers the choice of sentences, not the seeds, as there is one run of each"


def conclude(scores: SetScores, has_attention: Sequence[bool] = ()) -> str:
    """Compare the scores of the arms on a test set, in a sentence or two.

    Args:
        has_attention: For each run, whether it attends to source positions; empty if unknown. If
            exactly one of two arms does, the arms are called the attention model and the fixed
            vector.
    """
    whole = scores.whole
    informative = [name for name in scores.bucket_metrics if not whole.scores[name][0].is_too_short]
    if not informative:
        return (
            f"No conclusion: few references of {scores.name} have four tokens, so BLEU says little."
        )
    main = informative[0]
    metric = METRICS[main]
    names = _arm_names(scores, has_attention)
    overall = _Slice(f"all {scores.num_pairs:,} sentence pairs", whole.scores[main])
    best = max(score.interval.value for score in overall.scores)
    if metric.kind == "BLEU" and best < LEARNT:
        values = [f"{score.interval.value:.1f} {metric.title}" for score in overall.scores]
        return f"Nothing has been learnt yet: on {overall.label} {_listed(names, values)}."
    if len(names) > 1 and whole.bucket.is_thin:
        values = [score.interval.to_text() for score in overall.scores]
        distinct = whole.bucket.num_distinct
        number = f"{scores.num_pairs}"
        if distinct is not None and distinct < scores.num_pairs:
            number = f"{distinct} distinct"
        return (
            f"{number} sentence pairs are too few for a comparison by {metric.title}: "
            f"{_listed(names, values)}."
        )
    solid = [row for row in scores.buckets if not row.bucket.is_thin]
    slices = [_Slice(row.bucket.label, row.scores[main]) for row in solid]
    ends = [slices[0], slices[-1]] if len(slices) > 1 else []
    if len(names) == 1:
        return _conclude_one(names[0], metric.title, scores.unit, overall, ends)
    if len(names) == 2:
        return _conclude_two(names, metric.title, scores.unit, overall, ends)
    shown = overall
    if ends:
        shown = ends[1]._replace(label=f"sentences of {ends[1].label} {scores.unit}")
    return _conclude_many(names, metric.title, shown, lowest_is_best=metric.is_lower_better)


def _arm_names(scores: SetScores, has_attention: Sequence[bool]) -> list[str]:
    """Return the names of the arms. If exactly one of two arms attends to source positions, each
    name says whether the arm does."""
    names = [arm.name for arm in scores.arms]
    attends = [has_attention[arm.runs[0]] for arm in scores.arms] if has_attention else []
    if len(names) != 2 or len(set(attends)) < 2:
        return names
    kinds = {True: "the attention model", False: "the fixed vector"}
    labels = []
    for name, attends_to_source in zip(names, attends, strict=True):
        labels.append(f"{kinds[attends_to_source]} ({name})")
    return labels


def _listed(names: Sequence[str], values: Sequence[str]) -> str:
    return ", ".join(f"{name} scores {value}" for name, value in zip(names, values, strict=True))


def _conclude_one(name: str, title: str, unit: str, overall: _Slice, ends: Sequence[_Slice]) -> str:
    """Compare one arm's scores on the shortest and the longest sentences, which `ends` holds."""
    if not ends:
        score = overall.scores[0].interval.to_text(unit=f" {title}")
        return f"{name} scores {score} on {overall.label}."
    short, long = (end.scores[0].interval for end in ends)
    scores = (
        f"{short.value:.1f} {title} on sentences of {ends[0].label} {unit}, {long.value:.1f} on "
        f"those of {ends[1].label}"
    )
    is_clear = short.low > long.high or long.low > short.high
    if is_clear and abs(short.value - long.value) >= VISIBLE:
        return f"{name} scores {scores}."
    overlap = "" if is_clear else ", and the intervals overlap"
    return f"The length of a sentence makes no clear difference: {name} scores {scores}{overlap}."


def _conclude_two(
    names: Sequence[str], title: str, unit: str, overall: _Slice, ends: Sequence[_Slice]
) -> str:
    """Compare two arms, on the longest or the shortest sentences if they clearly differ there."""
    if not any(scores.is_visible() for scores in (overall, *ends)):
        return f"{names[0]} and {names[1]} score the same: {overall.value(0):.1f} {title}."
    clear = [end for end in ends if end.is_clear()]
    if not clear:
        first, second = (score.interval for score in overall.scores)
        first_score = first.to_text(unit=f" {title}")
        scores = f"{names[0]} scores {first_score}, {names[1]} {second.to_text()}"
        if not overall.is_clear():
            return f"No clear difference: on {overall.label} {scores}."
        if ends:
            scores += (
                "; the difference is clear on neither the shortest nor the longest sentences alone"
            )
        return f"On {overall.label} {scores}."
    shown = clear[-1]  # The longest sentences come last and are preferred.
    opposite = ends[0] if shown is ends[1] else ends[1]
    sentence = (
        f"On sentences of {shown.label} {unit} {names[0]} scores {shown.value(0):.1f} {title}, "
        f"{names[1]} {shown.value(1):.1f}; on those of {opposite.label} "
    )
    difference = f"{abs(opposite.difference()):.1f}"
    if not opposite.is_visible():
        return f"{sentence}they differ by less than 0.1."
    if not opposite.is_clear():
        return f"{sentence}the difference ({difference}) is not clear."
    has_same_sign = (opposite.difference() > 0) == (shown.difference() > 0)
    direction = "" if has_same_sign else ", the other way round"
    return f"{sentence}they differ by {difference}{direction}."


def _conclude_many(names: Sequence[str], title: str, shown: _Slice, *, lowest_is_best: bool) -> str:
    """Name the best and the worst of three or more arms."""
    order = sorted(range(len(names)), key=shown.value, reverse=not lowest_is_best)
    best, worst = order[0], order[-1]
    num_clear = sum(shown.is_clear(arm) for arm in range(1, len(names)))
    count = {0: "none", 1: "one", len(names) - 1: "all"}.get(num_clear, str(num_clear))
    verb = "differ" if num_clear > 1 else "differs"
    return (
        f"On {shown.label} {names[best]} is best with {shown.value(best):.1f} {title} and "
        f"{names[worst]} worst with {shown.value(worst):.1f}; {count} of the others {verb} clearly "
        f"from {names[0]}."
    )
