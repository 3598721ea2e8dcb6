"""State the conclusion of an evaluation in one or two sentences, computed from its scores.

The conclusion compares arms on the shortest and on the longest sentences, and says where a
difference may be due to chance. An arm is a group of runs that differ only in their seed. A bucket
holds the sentence pairs of a range of lengths. Buckets with too few sentence pairs are ignored. If
the whole set has too few pairs, arms are not compared.
"""

from collections.abc import Sequence
from typing import NamedTuple

from seq2seq_attn.config import plural
from seq2seq_attn.evaluation.results import ArmScore, SetScores
from seq2seq_attn.metrics.by_length import Bucket
from seq2seq_attn.metrics.significance import SIGNIFICANT_P
from seq2seq_attn.metrics.table import METRICS, Metric

LEARNT = 1.0
"""The least BLEU of a model that has learnt to translate at all."""
VISIBLE = 0.05
"""The least difference that is not 0.0 when rounded to one decimal."""


class _Slice(NamedTuple):
    """The scores of all arms on a bucket or on the whole set. Arms are named by index."""

    label: str
    scores: list[ArmScore]

    def value(self, arm: int) -> float:
        """Return the score of an arm."""
        return self.scores[arm].interval.value

    def difference(self, arm: int = 1) -> float:
        """Return the score of an arm minus the score of the first arm."""
        return self.value(arm) - self.value(0)

    def is_visible(self, arm: int = 1) -> bool:
        """Tell whether an arm differs from the first arm by at least 0.1 when rounded."""
        return abs(self.difference(arm)) >= VISIBLE

    def is_clear(self, arm: int = 1) -> bool:
        """Tell whether the difference between an arm and the first arm is visible and
        significant."""
        test = self.scores[arm].bootstrap
        return test is not None and test.is_significant and self.is_visible(arm)


class _Comparison(NamedTuple):
    """The names and scores of all arms, under the metric that the conclusion is about."""

    names: Sequence[str]
    metric: Metric
    unit: str
    """the unit of lengths"""
    overall: _Slice
    ends: Sequence[_Slice]
    """the shortest and the longest sentences; empty if there are fewer than two buckets"""

    def listed(self, values: Sequence[str]) -> str:
        """Return a list of the arms with a value for each arm."""
        pairs = zip(self.names, values, strict=True)
        return ", ".join(f"{name} scores {value}" for name, value in pairs)


def clear_note(scores: SetScores) -> str:
    """State when a difference counts as clear, and whether p covers the choice of seeds."""
    note = f"a difference is clear if p < {SIGNIFICANT_P:g} and its 95 % interval excludes 0"
    num_compared = len(scores.arms) - 1
    if num_compared > 1:
        note += f"; p has Holm's correction for {num_compared} comparisons"
    if scores.is_grouped:
        return f"{note}; p covers seeds and sentences"
    return f"{note}; p covers the choice of sentences, not the seeds, as there is one run of each"


def conclude(scores: SetScores, has_attention: Sequence[bool | None] = ()) -> str:
    """Compare the scores of the arms on a test set, in one or two sentences.

    Args:
        has_attention: For each run, whether the model attends to source positions; None for a file
            of translations, and empty if this is unknown. If exactly one of two models attends to
            source positions, the arms are called the attention model and the fixed vector.
    """
    whole = scores.whole
    informative = [name for name in scores.bucket_metrics if not whole.scores[name][0].is_too_short]
    if not informative:
        return (
            f"No conclusion: few references of {scores.name} have four tokens, so BLEU says little."
        )
    main = informative[0]
    overall = _Slice(f"all {scores.num_pairs:,} sentence pairs", whole.scores[main])
    solid = [row for row in scores.buckets if not row.bucket.is_thin]
    slices = [_Slice(row.bucket.label, row.scores[main]) for row in solid]
    ends = [slices[0], slices[-1]] if len(slices) > 1 else []
    names = _arm_names(scores, has_attention)
    comparison = _Comparison(names, METRICS[main], scores.unit, overall, ends)
    best = max(score.interval.value for score in overall.scores)
    if comparison.metric.kind == "BLEU" and best < LEARNT:
        return _conclude_nothing_learnt(comparison)
    if len(names) == 1:
        return _conclude_one(comparison)
    if whole.bucket.is_thin:
        return _conclude_too_few(comparison, whole.bucket)
    if len(names) == 2:
        return _conclude_two(comparison)
    return _conclude_many(comparison)


def _arm_names(scores: SetScores, has_attention: Sequence[bool | None]) -> list[str]:
    """Return the names of the arms. If exactly one of two arms attends to source positions, the
    names say which arm this is."""
    names = [arm.name for arm in scores.arms]
    attends = [has_attention[arm.runs[0]] for arm in scores.arms] if has_attention else []
    if attends == [True, False]:
        return [f"the attention model ({names[0]})", f"the fixed vector ({names[1]})"]
    if attends == [False, True]:
        return [f"the fixed vector ({names[0]})", f"the attention model ({names[1]})"]
    return names


def _conclude_nothing_learnt(comparison: _Comparison) -> str:
    """Give the scores of models that have not learnt to translate, or not this kind of text."""
    overall = comparison.overall
    values = [f"{score.interval.value:.1f} {comparison.metric.title}" for score in overall.scores]
    return (
        "Nothing has been learnt yet, or the text is unlike the training text, perhaps in another "
        f"language or the wrong direction: on {overall.label} {comparison.listed(values)}."
    )


def _conclude_too_few(comparison: _Comparison, bucket: Bucket) -> str:
    """Give the scores of arms on too few sentence pairs for a comparison."""
    number = len(bucket)
    noun = "sentence pair"
    if bucket.num_distinct is not None and bucket.num_distinct < number:
        number = bucket.num_distinct
        noun = "distinct sentence pair"
    verb = "is" if number == 1 else "are"
    values = [score.interval.to_text() for score in comparison.overall.scores]
    return (
        f"{plural(number, noun)} {verb} too few for a comparison by {comparison.metric.title}: "
        f"{comparison.listed(values)}."
    )


def _conclude_one(comparison: _Comparison) -> str:
    """Compare the scores of a single arm on the shortest and the longest sentences."""
    name = comparison.names[0]
    title = comparison.metric.title
    if not comparison.ends:
        overall = comparison.overall
        score = overall.scores[0].interval.to_text(unit=f" {title}")
        return f"{name} scores {score} on {overall.label}."
    shortest, longest = comparison.ends
    short = shortest.scores[0].interval
    long = longest.scores[0].interval
    scores = (
        f"{short.value:.1f} {title} on sentences of {shortest.label} {comparison.unit}, "
        f"{long.value:.1f} on those of {longest.label}"
    )
    is_clear = short.low > long.high or long.low > short.high
    if is_clear and abs(short.value - long.value) >= VISIBLE:
        return f"{name} scores {scores}."
    overlap = "" if is_clear else ", and the intervals overlap"
    return f"The length of a sentence makes no clear difference: {name} scores {scores}{overlap}."


def _conclude_two(comparison: _Comparison) -> str:
    """Compare two arms: on the longest or the shortest sentences if the difference is clear there,
    otherwise on all sentences."""
    overall = comparison.overall
    ends = comparison.ends
    if not any(scores.is_visible() for scores in (overall, *ends)):
        first, second = comparison.names
        score = f"{overall.value(0):.1f} {comparison.metric.title}"
        return f"{first} and {second} score the same: {score}."
    clear = [end for end in ends if end.is_clear()]
    if not clear:
        return _compare_overall(comparison)
    shown = clear[-1]  # The longest sentences come last and are preferred.
    opposite = ends[0] if shown is ends[1] else ends[1]
    return _compare_ends(comparison, shown, opposite)


def _compare_overall(comparison: _Comparison) -> str:
    """Compare two arms on all sentences."""
    first, second = comparison.names
    overall = comparison.overall
    first_score = overall.scores[0].interval.to_text(unit=f" {comparison.metric.title}")
    second_score = overall.scores[1].interval.to_text()
    scores = f"{first} scores {first_score}, {second} {second_score}"
    if not overall.is_clear():
        return f"No clear difference: on {overall.label} {scores}."
    if comparison.ends:
        scores += (
            "; the difference is clear on neither the shortest nor the longest sentences alone"
        )
    return f"On {overall.label} {scores}."


def _compare_ends(comparison: _Comparison, shown: _Slice, opposite: _Slice) -> str:
    """Compare two arms where the difference is clear (`shown`), and at the opposite end of the
    lengths."""
    first, second = comparison.names
    difference = f"{abs(opposite.difference()):.1f}"
    has_same_sign = (opposite.difference() > 0) == (shown.difference() > 0)
    if not opposite.is_visible():
        finding = "they differ by less than 0.1"
    elif not opposite.is_clear():
        finding = f"the difference ({difference}) is not clear"
    elif has_same_sign:
        finding = f"they differ by {difference}"
    else:
        finding = f"they differ by {difference}, the other way round"
    return (
        f"On sentences of {shown.label} {comparison.unit} {first} scores {shown.value(0):.1f} "
        f"{comparison.metric.title}, {second} {shown.value(1):.1f}; on those of {opposite.label} "
        f"{finding}."
    )


def _conclude_many(comparison: _Comparison) -> str:
    """Name the best and the worst of three or more arms, on the longest sentences if there are
    buckets."""
    names = comparison.names
    shown = comparison.overall
    where = shown.label
    if comparison.ends:
        shown = comparison.ends[1]
        where = f"sentences of {shown.label} {comparison.unit}"
    order = sorted(
        range(len(names)), key=shown.value, reverse=not comparison.metric.is_lower_better
    )
    best, worst = order[0], order[-1]
    score = f"{shown.value(best):.1f}"
    if score == f"{shown.value(worst):.1f}":
        return f"On {where} all arms score {score} {comparison.metric.title}."
    clear = [name for arm, name in enumerate(names) if shown.is_clear(arm)]
    count = {0: "none", 1: "one", len(names) - 1: "all"}.get(len(clear), str(len(clear)))
    verb = "differ" if len(clear) > 1 else "differs"
    return (
        f"On {where} {names[best]} is best with {score} {comparison.metric.title} "
        f"and {names[worst]} worst with {shown.value(worst):.1f}; {count} of the others {verb} "
        f"clearly from {names[0]}."
    )
