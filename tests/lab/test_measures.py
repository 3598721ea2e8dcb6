"""Statistics of runs, closest translations, ends of training."""

import json

import pytest
import sacrebleu

from scripts.laboratory.closest import closest
from scripts.laboratory.harness.records import read_training
from scripts.laboratory.harness.runs import bootstrap_by_name, difference, score_row, settings_of
from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UserError
from seq2seq_attn.metrics.bleu import Measure
from seq2seq_attn.metrics.significance import pool

REFERENCES = [
    "the dog runs over the green meadow",
    "two men play football in the park",
    "a woman reads a long book",
] * 8
GOOD = [line.replace("green", "red") for line in REFERENCES]
BAD = [line.replace("the", "a") for line in REFERENCES]


def test_a_gain_is_the_difference_of_means_over_common_resamples():
    measure = Measure("bleu", REFERENCES)
    samples = bootstrap_by_name({"good": measure.statistics(GOOD), "bad": measure.statistics(BAD)})
    row = score_row(samples["good"], samples["bad"])
    scores = [sacrebleu.corpus_bleu(lines, [REFERENCES]).score for lines in (GOOD, BAD)]
    assert row["bleu"]["value"] == pytest.approx(scores[0])
    assert row["gain"]["value"] == pytest.approx(scores[0] - scores[1])
    differences = samples["good"].samples[0] - samples["bad"].samples[0]
    assert min(differences) <= row["gain"]["low"] < row["gain"]["value"] < row["gain"]["high"] <= max(differences)
    assert row["paired_bootstrap"]["p_value"] < 0.01
    same = score_row(pool([samples["good"], samples["bad"]]), pool([samples["bad"], samples["good"]]))
    assert (same["gain"]["value"], same["paired_bootstrap"]["p_value"]) == (0.0, 1.0)


def test_the_closest_translations_become_pairs():
    lines = [
        "0 ||| a cat ||| -1 ||| -1",
        "0 ||| one dogs ||| -2 ||| -2",
        "1 ||| two dogs ||| -1 ||| -1",
        "2 |||  ||| 0 ||| 0",
    ]
    pairs = closest(lines, ["eins", "zwei", "drei"], ["one dog", "two dogs", "three dogs"])
    assert pairs == [("eins", "one dogs")]  # the second is an original pair, the third is blank


def test_a_difference_of_settings_names_what_an_objective_changes():
    base, late = (
        settings_of(load_config(["multi30k"], more)) for more in ([], ["train.objectives={coverage: {end: 0.5}}"])
    )
    changed = difference(base, late)
    assert changed["train.objectives.coverage.end"] == 0.5
    assert all(key.startswith("train.objectives.coverage.") for key in changed)
    assert difference(base, settings_of(load_config(["multi30k"], ["seed=3", "train.device=cpu"]))) == {}


def test_a_training_that_ended_early_is_not_called_finished(tmp_path):
    times = {"minutes": 1.0, "update": 5, "epoch": 1, "best_score": 1.0, "best_update": 5}
    (tmp_path / "train.log").write_text("INFO torch 2.6, on cpu, 1 thread, fp32\nINFO 461 parameters, 9 pairs\n")
    for reason, is_finished in (("train.max_epochs=1 reached", True), ("train.patience=3 reached", False)):
        (tmp_path / "finished.json").write_text(json.dumps({**times, "reason": reason}))
        trained = read_training(tmp_path)
        assert (trained["is_finished"], trained["num_parameters"], trained["precision"]) == (is_finished, 461, "fp32")
    (tmp_path / "train.log").write_text("starts\n")
    with pytest.raises(UserError, match=r"train\.log"):
        read_training(tmp_path)
