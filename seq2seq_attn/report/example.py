"""Choose the sentence whose attention map a page begins with."""

from collections.abc import Sequence

import numpy as np

from seq2seq_attn.translate.attention_map import LEVELS, PackedMap

MIN_TOKENS, MAX_TOKENS = 8, 16
"""of source and of translation, without <eos>: long enough to show something, short enough to be read at a glance"""
_EXACT = 100.0
_NEAR = 5.0
"""chrF: where no translation is exact, those this close to the best one are as good"""
_DISTANCE = 3
"""a target word is reordered if an earlier one attends to a source position at least this far to the right of its
own"""


def choose_example(
    maps: Sequence[Sequence[PackedMap | None]], chrf: Sequence[Sequence[float]]
) -> tuple[int, int] | None:
    """A run and the row of a sentence among those of all sets: among the sentences of middle length that the first run
    with attention translates best, without unknown words, the one with the most reordered words; one that every other
    run gets wrong, if there is any. None if every sentence with a map has unknown words.

    Args:
        maps: of each run, of each sentence.
        chrf: the same; 100 is an exact translation.
    """
    for run, (run_maps, scores) in enumerate(zip(maps, chrf, strict=True)):
        known = {row: packed for row, packed in enumerate(run_maps) if packed is not None and not packed.unknown}
        rows = [
            row
            for row, packed in known.items()
            if all(MIN_TOKENS < len(side) <= MAX_TOKENS + 1 for side in (packed.source_tokens, packed.target_tokens))
        ] or list(known)
        if rows:
            best = max(scores[row] for row in rows)
            good = [row for row in rows if scores[row] >= (best if best >= _EXACT else best - _NEAR)]
            others = [other for number, other in enumerate(chrf) if number != run]
            alone = [row for row in good if all(other[row] < min(_EXACT, scores[row]) for other in others)]
            return run, max(alone or good, key=lambda row: (*_shape(known[row]), -row))
    return None


def _shape(packed: PackedMap) -> tuple[int, float]:
    """The number of reordered target words, and the mean of the largest weights of all rows."""
    levels_TS = packed.levels_TS()
    largest_T = levels_TS.max(axis=1)
    looked_at = levels_TS.argmax(axis=1)[largest_T > LEVELS / 2]
    furthest = np.maximum.accumulate(looked_at)
    return int(np.sum(furthest - looked_at >= _DISTANCE)), float(largest_T.mean())
