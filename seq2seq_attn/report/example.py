"""Choose the sentence whose attention an HTML report begins with."""

from collections.abc import Sequence

import numpy as np

from seq2seq_attn.translate.attention_map import LEVELS, PackedMap

MIN_TOKENS = 8
"""An example needs at least this many tokens, without <eos>, on each side to show something."""
MAX_TOKENS = 16
"""An example has at most this many tokens, without <eos>, on each side, to be read at a glance."""
_EXACT = 100.0
_NEAR = 5.0
"""If no translation is exact, translations within this many chrF of the best count as equally
good."""
_DISTANCE = 3
"""A target word is reordered if an earlier target word attends to a source position that is at
least this many positions further right."""


def choose_example(
    maps: Sequence[Sequence[PackedMap | None]], chrf: Sequence[Sequence[float]]
) -> dict[str, int] | None:
    """Choose the `run` and the `row` of the example among the sentences of all sets.

    The run is the first run that has attention maps of sentences without unknown words. One of the
    sentences is chosen in three steps. Sentences of middle length are preferred. Sentences that the
    run translates best are preferred, above all those that every other run translates worse. The
    example is the remaining sentence with the most reordered words.

    Args:
        maps: For each run, the attention map of each sentence.
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
            example = max(best, key=lambda row: (*reordering_key(known[row]), -row))
            return {"run": run, "row": example}
    return None


def _is_middle_length(packed: PackedMap) -> bool:
    """Tell whether a sentence and its translation have `MIN_TOKENS` to `MAX_TOKENS` tokens."""
    lengths = [len(packed.source_tokens) - 1, len(packed.target_tokens) - 1]
    return MIN_TOKENS <= min(lengths) and max(lengths) <= MAX_TOKENS


def _best_translated(
    rows: Sequence[int], run: int, chrf: Sequence[Sequence[float]]
) -> Sequence[int]:
    """Return the sentences that a run translates best. Sentences that all other runs translate
    worse take precedence."""
    scores = chrf[run]
    best = max(scores[row] for row in rows)
    lowest = best if best >= _EXACT else best - _NEAR
    good = [row for row in rows if scores[row] >= lowest]
    only_here = []
    for row in good:
        as_good = [run_scores for run_scores in chrf if run_scores[row] >= scores[row]]
        if len(as_good) == 1:
            only_here.append(row)
    return only_here or good


def reordering_key(packed: PackedMap) -> tuple[int, float]:
    """Return a key that sorts examples.

    Its parts are the number of reordered target words, and the mean over target words of the
    largest attention weight.
    """
    levels_TS = packed.levels_TS()
    largest_T = levels_TS.max(axis=1)
    attended = levels_TS.argmax(axis=1)[largest_T > LEVELS / 2]
    furthest = np.maximum.accumulate(attended)
    return int(np.sum(furthest - attended >= _DISTANCE)), float(largest_T.mean())
