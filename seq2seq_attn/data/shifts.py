"""Find parallel text whose sides are shifted by some lines, or do not belong together.

Similar sources should have similar targets: the targets of other pairs, weighted by the similarity
of their sources, predict the letters of a target. How well they do is a test of independence (HSIC,
Gretton et al. 2005). Lines are compared within a side only, so that the languages do not matter.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from seq2seq_attn.errors import UserError

Floats = npt.NDArray[Any]
WINDOW = 50
"""number of successive pairs in a sample"""
MAX_PAIRS = 1_500
"""maximum number of pairs in a sample"""
MIN_PAIRS = 100
"""the smallest sample that is checked"""
SHIFTS = (-3, -2, -1, 1, 2, 3)
MIN_RUN = 20
"""minimum number of successive pairs that are judged"""
MARGIN = 1.2
"""factor by which shifted targets must be predicted better. Neighbours in a sorted dictionary are
nearly equal, so a shift costs little there."""
MIN_SCORE = 6.5
"""minimum mean of predictions, in standard errors. In 593 texts of 100 to 1,000 translations or
pronunciations, the pairs have 7 and more, and shifted targets 0; in 45 texts of captions that
describe the same picture, shifted targets have at most 3.8. Lines in random order have at most
5.9."""


def check_sides(text: str, sample: Sequence[tuple[int, str, str]]) -> list[str]:
    """Return a warning if the sides of a text do not belong together, or else an empty list.

    Args:
        text: the name of the text.
        sample: index, source and target of pairs, in windows of successive pairs.

    Raises:
        UserError: the sides are shifted.
    """
    if len(sample) < MIN_PAIRS:
        return []
    indices, sources, targets = zip(*sample, strict=True)
    source_letters = _letters(sources)
    letters = _letters(targets)
    # Neighbours may be similar on both sides even if the sides are shifted.
    similarity = source_letters @ source_letters.T
    similarity = np.triu(similarity, MIN_RUN) + np.tril(similarity, -MIN_RUN)
    predicted = similarity @ letters
    agreement = np.sum(predicted * letters, axis=1)
    best = (MIN_SCORE, 0, 0, 0)
    for shift in SHIFTS:
        shifted = np.roll(letters, -shift, axis=0)
        # Predict the targets as if the other pairs were shifted too, and as if they were not.
        for prediction in (similarity @ shifted, predicted):
            gains = np.sum(prediction * shifted, axis=1) - MARGIN * agreement
            best = max(best, (*_best_run(gains), shift))
    _, start, stop, shift = best
    shifted_targets = [*targets[shift:], *targets[:shift]]
    num_equal = sum(map(str.__eq__, sources[start:stop], shifted_targets[start:stop]))
    # In a dialogue, the target is the next line, which is also the source of the next pair.
    is_dialogue = num_equal >= (stop - start) / 2
    if not is_dialogue:
        raise UserError(
            f"{text}: the sides are shifted: from about line {indices[start] + 1:,} to "
            f"{indices[stop - 1] + 1:,}, line i of the source belongs to line i{shift:+} of the "
            "target; look for a missing line before them; if the pairs are correct, shuffle them"
        )
    score, _, _ = _best_run(agreement)
    if score >= MIN_SCORE:
        return []
    return [
        f"{text}: the sides do not seem to be translations of each other, because similar sources "
        "do not have similar targets; look at some pairs"
    ]


def _letters(lines: Sequence[str]) -> Floats:
    """Return the log counts of the bytes in each line, [lines, 256], centred over the lines and
    scaled to length 1."""
    codes = (np.frombuffer(line.encode(), np.uint8) for line in lines)
    letters = np.log1p([np.bincount(line, minlength=256) for line in codes], dtype=np.float32)
    letters -= letters.mean(axis=0)
    letters /= np.linalg.norm(letters, axis=1, keepdims=True) + 1e-6
    return letters


def _best_run(gains: Floats) -> tuple[float, int, int]:
    """Find the successive pairs with the largest sum of gains. Return the mean of their gains in
    standard errors, the position of the first pair, and the position after the last pair."""
    sums = np.cumsum([0.0, *gains])
    stop = int(np.argmax(sums - np.minimum.accumulate(sums)))
    start = int(np.argmin(sums[: stop + 1]))
    run = gains[start:stop]
    if len(run) < MIN_RUN:
        return 0.0, 0, 0
    return float(run.mean() / (run.std() + 1e-9) * np.sqrt(len(run))), start, stop
