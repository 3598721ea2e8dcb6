"""Read the test sentences of runs for a page, and the accuracy of their translations by length."""

from collections.abc import Sequence

import numpy as np

from seq2seq_attn.errors import UserError
from seq2seq_attn.files import JsonObject, ListedFiles
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.run import Run
from seq2seq_attn.text.languages import separates_words

NUM_SENTENCES = 24
"""number of test sentences that the page's slider offers, from short to long"""
LENGTHS_PER_POINT = 3
"""number of sentence lengths that share a point of the curve"""
LEAST_EQUAL = 0.2
"""The curve shows the share of translations that equal the reference. If this share is below
LEAST_EQUAL for every run, the curve shows chrF instead."""


def kept_values(runs: Sequence[Run]) -> JsonObject:
    """Return up to `NUM_SENTENCES` test sentences with references, from short to long, and the
    accuracy by length. The values are empty if the runs have no common test set."""
    pairs = _test_pairs(runs)
    by_length = sorted(pairs, key=lambda pair: len(pair[0]))
    sentences = []
    for number in range(NUM_SENTENCES if pairs else 0):
        sentences.append(by_length[number * (len(pairs) - 1) // (NUM_SENTENCES - 1)])
    return {"sentences": list(dict.fromkeys(sentences)), **_accuracy_by_length(runs, pairs)}


def _test_pairs(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return the test pairs of the runs. Return no pairs if a run has no saved set, or if the runs
    have different sets."""
    try:
        sets = [run.read_set(_set_name(run)) for run in runs]
    except UserError:  # for example, a run from the hub has no saved sets
        return []
    if any(text != sets[0] for text in sets):
        return []
    return list(zip(sets[0].source, sets[0].references, strict=True))


def _accuracy_by_length(runs: Sequence[Run], pairs: Sequence[tuple[str, str]]) -> JsonObject:
    """Return the accuracy of each run on test sentences of similar length.

    `accuracy` has a point for each group of sentences. A point has, for each run, the share of
    translations that equal the reference. If few translations equal the reference, the point has
    chrF divided by 100 instead. There are no points unless `evaluate` has saved the translations by
    all runs.
    """
    is_spaced = separates_words(runs[0].config.data.source_language)
    points: list[JsonObject] = []
    curve = {"unit": "words" if is_spaced else "characters", "measure": "equal", "accuracy": points}
    if not pairs:
        return curve
    sources, references = zip(*pairs, strict=True)
    try:
        saved = [_saved_lines(run) for run in runs]
    except UserError:  # a run has no saved translations
        return curve
    if any(len(lines) != len(pairs) for lines in saved):
        return curve
    is_equal = np.array(saved, dtype=object) == np.array(references, dtype=object)
    has_chrf = is_equal.mean(axis=1).max() < LEAST_EQUAL
    if has_chrf:
        curve["measure"] = "chrF"
        measure = Measure("chrf", references)
        statistics = [measure.statistics(lines) for lines in saved]
    lengths = np.array([len(line.split() if is_spaced else line) for line in sources])
    groups = lengths // LENGTHS_PER_POINT
    for group in np.unique(groups):
        [members] = np.nonzero(groups == group)
        shares = is_equal[:, members].mean(axis=1).tolist()
        if has_chrf:
            shares = [corpus.subset(members).score().score / 100 for corpus in statistics]
        inside = lengths[members].tolist()
        point = {"length": float(np.mean(inside)), "count": len(inside), "shares": shares}
        points.append(point | {"shortest": min(inside), "longest": max(inside)})
    return curve


def _set_name(run: Run) -> str:
    """Return the name of the run's first test set, or of the validation set if there is no test
    set."""
    valid, *test_sets = run.splits
    return test_sets[0] if test_sets else valid


def _saved_lines(run: Run) -> list[str]:
    """Return the translations of the set, which `evaluate` has saved in the run. Raises UserError:
    there are no saved translations."""
    content = ListedFiles(run.hyps_dir, within=run.path).read(f"{_set_name(run)}.txt")
    return content.decode().split("\n")[:-1]
