"""Intervals and paired tests agree with sacreBLEU: its functions, its command, and plain Python."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest as SacrebleuTest

from seq2seq_attn.metrics import significance
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.metrics.significance import Interval, bootstrap_scores, paired_randomization, percentile_interval
from tests.metrics.corpora import make_hypotheses, make_references
from tests.metrics.pairs import bootstrap, interval, retention

REFERENCES = make_references(120)
BASELINE = make_hypotheses(REFERENCES, seed=1, noise=0.30)
SYSTEM = make_hypotheses(REFERENCES, seed=2, noise=0.36)
METRICS = {"bleu": (BLEU, "BLEU"), "chrf": (CHRF, "chrF2"), "ter": (TER, "TER")}


def statistics_of(name, *systems, references=REFERENCES):
    measure = Measure(name, references)
    return [measure.statistics(system) for system in systems]


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("noise", [0.31, 0.36, 0.45])
def test_paired_tests_equal_sacrebleus(name, noise):
    make, title = METRICS[name]
    system = make_hypotheses(REFERENCES, seed=3, noise=noise)
    ours = statistics_of(name, BASELINE, system)
    systems = [("baseline", BASELINE), ("system", system)]
    _, theirs = SacrebleuTest(systems, {name: make()}, [REFERENCES], "bs", n_samples=400)()
    assert bootstrap(*ours, num_resamples=400).p_value == theirs[title][1].p_value
    _, theirs = SacrebleuTest(systems, {name: make()}, [REFERENCES], "ar", n_samples=1000)()
    p_value = paired_randomization(*ours, num_trials=1000).p_value
    if name == "ter":  # counts of edits tie
        assert p_value >= theirs[title][1].p_value
    else:
        assert p_value == theirs[title][1].p_value
    assert theirs[title][1].score - theirs[title][0].score == bootstrap(*ours, num_resamples=9).difference


@pytest.mark.parametrize(("num_changed", "p_value"), [(1, 1.0), (2, 0.5), (3, 0.25)])
@pytest.mark.parametrize("name", ["bleu", "exact", "wer"])
def test_few_different_sentences_are_not_significant(name, num_changed, p_value):
    """Each is swapped or not: all or none of them in 2 of 2^n cases, which tie with the difference."""
    system = list(BASELINE)
    for index in [i for i, line in enumerate(BASELINE) if line != REFERENCES[i]][:num_changed]:
        system[index] = REFERENCES[index]
    found = paired_randomization(*statistics_of(name, BASELINE, system))
    assert found.p_value == pytest.approx(p_value, abs=0.02)


def test_paired_tests_equal_the_sacrebleu_command(tmp_path):
    for name, lines in {"ref": REFERENCES, "a": BASELINE, "b": SYSTEM}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    baseline, system = statistics_of("bleu", BASELINE, SYSTEM)
    for option, test in [("--paired-bs", bootstrap), ("--paired-ar", paired_randomization)]:
        command = [
            sys.executable,
            "-m",
            "sacrebleu",
            "ref",
            "-i",
            "a",
            "b",
            "-m",
            "bleu",
            option,
            "-f",
            "json",
            "-w",
            "9",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        of_baseline, of_system = json.loads(done.stdout)
        assert of_baseline["BLEU"]["score"] == pytest.approx(baseline.score().score, abs=1e-8)
        assert of_system["BLEU"]["score"] == pytest.approx(system.score().score, abs=1e-8)
        assert of_system["BLEU"]["p_value"] == pytest.approx(test(baseline, system).p_value, abs=1e-9)


def test_interval_equals_sacrebleus_and_plain_resampling():
    [statistics] = statistics_of("bleu", BASELINE)
    found = interval(statistics, num_resamples=200)
    theirs = BLEU().corpus_score(BASELINE, [REFERENCES], n_bootstrap=200)
    assert (found.high - found.low) / 2 == pytest.approx(theirs._ci, abs=1e-9)
    drawn = np.random.default_rng(12345).choice(120, size=(200, 120), replace=True)
    metric = BLEU()
    scores = []
    for row in drawn.tolist():
        sampled = [BASELINE[i] for i in row], [REFERENCES[i] for i in row]
        scores.append(metric.corpus_score(sampled[0], [sampled[1]]).score)
    # sacreBLEU scores resamples in float32 and we follow it: hence not 1e-9 here
    assert found.low == pytest.approx(sorted(scores)[5], abs=1e-4)
    assert found.high == pytest.approx(sorted(scores)[194], abs=1e-4)
    assert found.low < found.value < found.high


@pytest.mark.parametrize("name", METRICS)
def test_chunks_draw_the_same_as_one_piece(name, monkeypatch):
    systems = statistics_of(name, BASELINE, SYSTEM)
    whole = bootstrap_scores(*systems, num_resamples=100), paired_randomization(*systems, num_trials=100)
    monkeypatch.setattr(significance, "_CHUNK_CELLS", 50 * 120)  # of 100 rows of 120 pairs, 50 fit and 32 are taken
    chunked = bootstrap_scores(*systems, num_resamples=100), paired_randomization(*systems, num_trials=100)
    np.testing.assert_array_equal(whole[0], chunked[0])
    assert whole[1] == chunked[1]


def test_same_seed_same_result_and_another_seed_another():
    systems = statistics_of("bleu", BASELINE, SYSTEM)
    assert interval(systems[0]) == interval(systems[0])
    assert interval(systems[0]) != interval(systems[0], seed=1)


def test_identical_systems_do_not_differ():
    systems = statistics_of("bleu", BASELINE, list(BASELINE))
    for result in (bootstrap(*systems), paired_randomization(*systems)):
        assert (result.difference, result.p_value) == (0.0, 1.0)


def test_equal_scores_do_not_differ_whatever_the_sentences():
    for name, one, other in (("bleu", "zzz", "qqq"), ("chrf", "zzz", "ZZZ"), ("bleu", "zzz", "")):
        for test in (bootstrap, paired_randomization):
            result = test(*statistics_of(name, [one] * 120, [other] * 120))
            assert (result.difference, result.p_value) == (0.0, 1.0)


def test_a_clear_difference_is_significant_and_none_is_not():
    worse = make_hypotheses(REFERENCES, seed=5, noise=0.9)
    same = make_hypotheses(REFERENCES, seed=6, noise=0.30)
    clear, none = statistics_of("bleu", BASELINE, worse), statistics_of("bleu", BASELINE, same)
    for test in (bootstrap, paired_randomization):
        assert test(*clear).p_value < 0.01
        assert test(*clear).difference < -5
        assert test(*none).p_value > 0.05


def test_retention_is_the_ratio_with_a_paired_band():
    baseline, system = statistics_of("bleu", BASELINE, SYSTEM)
    ratio = retention(baseline, system, num_resamples=200)
    assert ratio.value == system.score().score / baseline.score().score
    of_baseline, of_system = bootstrap_scores(baseline, system, num_resamples=200)
    ratios = sorted(b / a for a, b in zip(of_baseline.tolist(), of_system.tolist(), strict=True))
    assert (ratio.low, ratio.high) == pytest.approx((ratios[5], ratios[194]), abs=1e-12)
    itself = retention(baseline, baseline)
    assert (itself.low, itself.value, itself.high) == (1.0, 1.0, 1.0)


def test_retention_of_a_baseline_at_zero_is_undefined():
    nothing, something = statistics_of("bleu", ["zzz"] * 120, SYSTEM)
    assert retention(nothing, something) is None


def test_systems_of_other_pairs_or_measures_are_refused():
    [bleu], [chrf] = statistics_of("bleu", BASELINE), statistics_of("chrf", BASELINE)
    with pytest.raises(ValueError, match="same sentence pairs and the same measure"):
        bootstrap(bleu, chrf)
    with pytest.raises(ValueError, match="same sentence pairs and the same measure"):
        paired_randomization(bleu, bleu.subset(range(7)))


def test_percentile_interval_leaves_a_fortieth_out_on_each_side():
    samples = np.arange(1000.0)
    random.Random(1).shuffle(samples)
    assert percentile_interval(3.0, samples) == Interval(3.0, 25.0, 974.0)
