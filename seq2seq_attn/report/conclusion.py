"""The finding of an evaluation in a sentence or two, computed from its scores.

It compares the shortest and the longest sentences, and says so where a difference may be due to
chance. Buckets with too few sentence pairs are left out.
"""

from collections.abc import Sequence
from typing import NamedTuple

from seq2seq_attn.evaluation.scores import ArmScore, SetScores
from seq2seq_attn.metrics.table import METRICS

SUMMARY_ONLY = ("fixed", "initial")
"""attentions that read nothing of the encoder but its summary"""
LEARNT = 1.0
"""of less BLEU, a model has not learnt to translate"""
VISIBLE = 0.05
"""smaller differences are 0.0 with one decimal"""
CLEAR_P = 0.025
"""differences with a smaller p are clear: of sacreBLEU's paired bootstrap, this is about 0.05 in a
two-sided test"""


class _Part(NamedTuple):
    """Some sentences, and the scores of all arms on them."""

    sentences: str
    scores: list[ArmScore]

    def value(self, arm: int) -> float:
        return self.scores[arm].interval.value

    def difference(self, arm: int = 1) -> float:
        return self.value(arm) - self.value(0)

    def is_visible(self, arm: int = 1) -> bool:
        """Whether the difference from the first arm is more than 0.0 with one decimal."""
        return abs(self.difference(arm)) >= VISIBLE

    def is_clear(self, arm: int = 1) -> bool:
        """Whether that difference exceeds what the choice of sentences and the seeds can
        explain."""
        test, first, other = (
            self.scores[arm].bootstrap,
            self.scores[0].values,
            self.scores[arm].values,
        )
        if test is None or test.p_value >= CLEAR_P or not self.is_visible(arm):
            return False
        have_seeds = min(first) < max(first) or min(other) < max(other)
        return not have_seeds or min(other) > max(first) or max(other) < min(first)


def clear_note(*, has_seeds: bool) -> str:
    """The rule of `_Part.is_clear`, for the reader."""
    rule = f"a difference is clear if p < {CLEAR_P:g} (about 0.05 in a two-sided test)"
    return f"{rule} and the scores of the seeds do not overlap" if has_seeds else rule


def conclude(
    scores: SetScores, *, unit: str = "source tokens", attentions: Sequence[str] = ()
) -> str:
    """State in a sentence or two what the scores of one test set show.

    Args:
        unit: what lengths are counted in.
        attentions: the attention variant of each run, so that two arms can be called the attention
            model and the fixed vector; empty: unknown.
    """
    metric = next(
        (name for name in scores.bucket_metrics if not scores.whole.scores[name][0].is_too_short),
        None,
    )
    if metric is None:
        return (
            f"No conclusion: few references of {scores.name} have four tokens, so BLEU says little."
        )
    names = [arm.name for arm in scores.arms]
    are_fixed = (
        [attentions[arm.runs[0]] in SUMMARY_ONLY for arm in scores.arms] if attentions else []
    )
    if len(names) == len(are_fixed) == 2 and are_fixed[0] != are_fixed[1]:
        kinds = [
            "the fixed vector" if is_fixed else "the attention model" for is_fixed in are_fixed
        ]
        names = [f"{kind} ({name})" for kind, name in zip(kinds, names, strict=True)]
    overall = _Part(f"all {scores.num_pairs:,} sentence pairs", scores.whole.scores[metric])
    solid = [row for row in scores.buckets if not row.bucket.is_thin]
    ends = (
        [_Part(row.bucket.label, row.scores[metric]) for row in (solid[0], solid[-1])]
        if len(solid) > 1
        else []
    )
    title = METRICS[metric].title
    values = [overall.value(arm) for arm in range(len(names))]
    if METRICS[metric].kind == "BLEU" and max(values) < LEARNT:
        listed = ", ".join(
            f"{name} scores {value:.1f} {title}" for name, value in zip(names, values, strict=True)
        )
        return f"Nothing has been learnt yet: on {overall.sentences} {listed}."
    if len(names) == 1:
        return _one(names[0], title, unit, overall, ends)
    if len(names) == 2:
        return _two(names, title, unit, overall, ends)
    where = f"sentences of {ends[1].sentences} {unit}" if ends else overall.sentences
    part = ends[1] if ends else overall
    return _many(names, title, part, where, lowest_is_best=METRICS[metric].is_lower_better)


def _one(name: str, title: str, unit: str, overall: _Part, ends: Sequence[_Part]) -> str:
    if not ends:
        return f"{name} scores {overall.scores[0].interval.to_text(unit=f' {title}')} on {overall.sentences}."
    short, long = (part.scores[0].interval for part in ends)
    labels = [part.sentences for part in ends]
    scores = f"{short.value:.1f} {title} on sentences of {labels[0]} {unit}, {long.value:.1f} on those of {labels[1]}"
    is_clear = short.low > long.high or long.low > short.high
    if is_clear and abs(short.value - long.value) >= VISIBLE:
        return f"{name} scores {scores}."
    overlap = "" if is_clear else ", and the intervals overlap"
    return f"The length of a sentence makes no clear difference: {name} scores {scores}{overlap}."


def _two(names: Sequence[str], title: str, unit: str, overall: _Part, ends: Sequence[_Part]) -> str:
    if not any(part.is_visible() for part in (overall, *ends)):
        return f"{names[0]} and {names[1]} score the same: {overall.value(0):.1f} {title}."
    clear = [part for part in ends if part.is_clear()]
    if not clear:
        first, second = (score.interval for score in overall.scores)
        scores = (
            f"{names[0]} scores {first.to_text(unit=f' {title}')}, {names[1]} {second.to_text()}"
        )
        if not overall.is_clear():
            return f"No clear difference: on {overall.sentences} {scores}."
        lengths = (
            "; the difference is clear on neither the shortest nor the longest sentences alone"
            if ends
            else ""
        )
        return f"On {overall.sentences} {scores}{lengths}."
    shown = clear[-1]  # the longest sentences, if the arms differ there
    other = ends[0] if shown is ends[1] else ends[1]
    sentence = (
        f"On sentences of {shown.sentences} {unit} {names[0]} scores {shown.value(0):.1f} {title}, "
        f"{names[1]} {shown.value(1):.1f}; on those of {other.sentences} "
    )
    difference = f"{abs(other.difference()):.1f}"
    if not other.is_visible():
        return f"{sentence}they differ by less than 0.1."
    if not other.is_clear():
        return f"{sentence}the difference ({difference}) is not clear."
    same_sign = (other.difference() > 0) == (shown.difference() > 0)
    return f"{sentence}they differ by {difference}{'' if same_sign else ', the other way round'}."


def _many(
    names: Sequence[str], title: str, part: _Part, where: str, *, lowest_is_best: bool
) -> str:
    order = sorted(range(len(names)), key=part.value, reverse=not lowest_is_best)
    best, worst = order[0], order[-1]
    num_clear = sum(part.is_clear(arm) for arm in range(1, len(names)))
    count = {0: "none", 1: "one", len(names) - 1: "all"}.get(num_clear, str(num_clear))
    verb = "differ" if num_clear > 1 else "differs"
    return (
        f"On {where} {names[best]} is best with {part.value(best):.1f} {title} and {names[worst]} "
        f"worst with {part.value(worst):.1f}; {count} of the others {verb} clearly from {names[0]}."
    )
