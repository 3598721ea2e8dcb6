"""Choose the sentence whose attention an HTML report begins with."""

from collections.abc import Sequence

import numpy as np

from seq2seq_attn.translate.attention_map import LEVELS, PackedMap

MIN_TOKENS = 8
"""fewest tokens of source and translation, without <eos>: enough to show something"""
MAX_TOKENS = 16
"""most tokens of source and translation, without <eos>: few enough to be read at a glance"""
_EXACT = 100.0
_NEAR = 5.0
"""chrF: where no translation is exact, those this close to the best one are as good"""
_DISTANCE = 3
"""a target word is reordered if an earlier one attends to a source position at least this far to
the right of its own"""


def choose_example(
    maps: Sequence[Sequence[PackedMap | None]], chrf: Sequence[Sequence[float]]
) -> dict[str, int] | None:
    """Choose a `run` and the `row` of a sentence among those of all sets.

    The run is the first with attention. Among the sentences of middle length without unknown words
    that it translates best, the example is the one with the most reordered words; if there are
    some that every other run gets wrong, one of these. None if every sentence with a map has
    unknown words.

    Args:
        maps: for each run and sentence.
        chrf: for each run and sentence; 100 is an exact translation.
    """
    for run, run_maps in enumerate(maps):
        known = {}
        for row, packed in enumerate(run_maps):
            if packed is not None and not packed.unknown:
                known[row] = packed
        if known:
            rows = [row for row, packed in known.items() if _is_middle_length(packed)]
            best = _best_translated(rows or list(known), run, chrf)
            example = max(best, key=lambda row: (*reordering_key(known[row]), -row))
            return {"run": run, "row": example}
    return None


def _is_middle_length(packed: PackedMap) -> bool:
    lengths = [len(packed.source_tokens) - 1, len(packed.target_tokens) - 1]
    return MIN_TOKENS <= min(lengths) and max(lengths) <= MAX_TOKENS


def _best_translated(
    rows: Sequence[int], run: int, chrf: Sequence[Sequence[float]]
) -> Sequence[int]:
    """The sentences that a run translates best; if possible, those that all other runs get
    wrong."""
    scores = chrf[run]
    best = max(scores[row] for row in rows)
    lowest = best if best >= _EXACT else best - _NEAR
    good = [row for row in rows if scores[row] >= lowest]
    only_here = []
    for row in good:
        limit = min(_EXACT, scores[row])
        as_good = [run_scores for run_scores in chrf if run_scores[row] >= limit]
        if len(as_good) == 1:
            only_here.append(row)
    return only_here or good


def reordering_key(packed: PackedMap) -> tuple[int, float]:
    """The number of reordered target words, and the mean of the largest weights of all rows."""
    levels_TS = packed.levels_TS()
    largest_T = levels_TS.max(axis=1)
    attended = levels_TS.argmax(axis=1)[largest_T > LEVELS / 2]
    furthest = np.maximum.accumulate(attended)
    return int(np.sum(furthest - attended >= _DISTANCE)), float(largest_T.mean())
