"""Choose the sentence whose attention map an HTML report shows first."""

from collections.abc import Sequence

import numpy as np

from seq2seq_attn.translate.attention_map import LEVELS, PackedMap

MIN_TOKENS = 8
"""the least number of tokens on each side of an example, without <eos>"""
MAX_TOKENS = 16
"""the largest number of tokens on each side of an example, without <eos>, so that readers take in
the map at a glance"""
_EXACT = 100.0
"""the chrF of an exact translation"""
_NEAR = 5.0
"""If no translation is exact, translations count as equally good if their chrF is at most this much
below the best chrF."""
_DISTANCE = 3
"""A target word is reordered if an earlier target word attends to a source position that is at
least this many positions further right."""


def choose_example(
    maps: Sequence[Sequence[PackedMap | None]], chrf: Sequence[Sequence[float]]
) -> dict[str, int] | None:
    """Choose the run and the sentence whose attention the report shows first.

    The run is the first run that has an attention map of a sentence without unknown words. The
    candidates are all sentences of this run that have such a map. Three steps choose one of them:

    1. Keep the sentences of middle length. If there are none, keep all candidates.
    2. Keep the sentences that the run translates best. If there are sentences among them that all
       other runs translate worse, keep only these sentences.
    3. Choose the sentence with the most reordered words.

    Args:
        maps: For each run, the attention map of each sentence; None for a sentence without a map.
        chrf: For each run, the chrF of each sentence. 100 is an exact translation.

    Returns:
        The indices `run` and `row`, or None if every sentence with a map has unknown words.
    """
    for run, run_maps in enumerate(maps):
        known = {}
        for row, packed in enumerate(run_maps):
            if packed is not None and not packed.unknown:
                known[row] = packed
        if known:
            rows = [row for row, packed in known.items() if _is_middle_length(packed)]
            best = _best_translated(rows or list(known), run, chrf)
            # Of sentences with equal keys, `max` returns the first.
            example = max(best, key=lambda row: reordering_key(known[row]))
            return {"run": run, "row": example}
    return None


def _is_middle_length(packed: PackedMap) -> bool:
    """Tell whether a sentence and its translation have `MIN_TOKENS` to `MAX_TOKENS` tokens."""
    lengths = [len(packed.source_tokens) - 1, len(packed.target_tokens) - 1]
    return MIN_TOKENS <= min(lengths) and max(lengths) <= MAX_TOKENS


def _best_translated(
    rows: Sequence[int], run: int, chrf: Sequence[Sequence[float]]
) -> Sequence[int]:
    """Return the sentences that a run translates best. If there are sentences among them that all
    other runs translate worse, return only these sentences."""
    scores = chrf[run]
    best = max(scores[row] for row in rows)
    lowest = best if best >= _EXACT else best - _NEAR
    good = [row for row in rows if scores[row] >= lowest]
    only_here = []
    for row in good:
        runs_as_good = [other for other in chrf if other[row] >= scores[row]]
        if len(runs_as_good) == 1:  # The run itself always counts.
            only_here.append(row)
    return only_here or good


def reordering_key(packed: PackedMap) -> tuple[int, float]:
    """Return a key by which examples are sorted: the number of reordered target words, and the mean
    over target words of the largest attention weight."""
    levels_TS = packed.levels_TS()
    largest_T = levels_TS.max(axis=1)
    # A word whose weights are all at most half of the scale points to no single source position.
    is_clear_T = largest_T > LEVELS / 2
    attended = levels_TS.argmax(axis=1)[is_clear_T]
    furthest = np.maximum.accumulate(attended)
    return int(np.sum(furthest - attended >= _DISTANCE)), float(largest_T.mean())
