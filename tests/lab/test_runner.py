"""The runner on a tiny experiment: what it trains and keeps, and that its records have the form of
those in docs; settings and ends of runs, closest translations."""

import json
from pathlib import Path

import pytest
import yaml

from scripts.laboratory import experiment as experiments
from scripts.laboratory import schemas
from scripts.laboratory.__main__ import main
from scripts.laboratory.experiment import load_experiment
from scripts.laboratory.harness.records import RECORDS, ROOT, read_training
from scripts.laboratory.harness.runs import difference, settings_of
from seq2seq_attn.config import load_config
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import read_json

LIMIT = {"train": 200, "valid": 20, "test": 40}
TINY = {
    "question": "Does it run?",
    "configs": ["quickstart"],
    "texts": ["echo made >> $dir/made"],
    "set": {
        "data.limit": LIMIT,
        **{
            f"model.{key}": 16
            for key in ("embedding_size", "hidden_size", "readout_size", "encoder.hidden_size")
        },
        "search.beam_size": 1,
        "train.max_epochs": 1,
    },
    "arms": {
        "additive": {
            "about": "all states",
            "configs": ["attention/additive"],
            "is_published": True,
        },
        "uniform": {"about": "their mean", "configs": ["attention/uniform"]},
    },
    "seeds": "1-2",
    "evaluate": {"concatenate": [1, 2], "by_length": "1000", "metric": ["bleu", "chrf"]},
    "chosen_on": "validation",
    "schema": "points",
    "record": "docs/bottleneck/single.json",
    "page": "docs/bottleneck/README.md",
}


@pytest.fixture(scope="module")
def folder(module_path):
    """The working folder of a finished experiment, with its records in place of `docs`."""
    (module_path / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(module_path)
        patch.setattr(experiments, "FOLDER", module_path)
        patch.setattr(experiments, "ROOT", module_path)
        main(["run", "tiny"])
        yield module_path


def runs(folder):
    finished = folder.glob("runs/lab/tiny/*/finished.json")
    return {path.parent.name: path.stat().st_mtime_ns for path in finished}


def written(schema, **changes):
    results = load_experiment("tiny").model_copy(update=changes).results()
    records = schemas.SCHEMAS[schema](results)
    return {str(path.relative_to(Path.cwd())): record for path, record in records}


def assert_like(record, former, *, without=()):
    """Every key of a former record is in the new one, in the first element of a list, so that the
    page can show it."""
    if isinstance(former, dict):
        for key, part in former.items():
            if key not in without:
                assert key in record, key
                assert_like(record[key], part, without=without)
    elif isinstance(former, list) and former:
        assert_like(record[0], former[0], without=without)


def test_every_arm_is_trained_with_every_seed(folder):
    assert set(runs(folder)) == {"additive-s1", "additive-s2", "uniform-s1", "uniform-s2"}
    record = read_json(folder / TINY["record"])
    assert [arm["seeds"] for arm in record["arms"]] == [[1, 2], [1, 2]]
    assert not any(Path(part).is_absolute() for part in record["environment"]["command"])


def test_the_same_call_trains_nothing_and_gives_the_same_record(folder):
    before, record = runs(folder), read_json(folder / TINY["record"])
    main(["run", "tiny"])
    assert runs(folder) == before
    assert (folder / "runs/lab/tiny/made").read_text() == "made\n"
    again = read_json(folder / TINY["record"])
    assert again["points"] == record["points"]


def test_an_interrupted_run_is_continued_and_others_are_kept(folder):
    before = runs(folder)
    run = folder / "runs/lab/tiny/uniform-s1"
    (run / "finished.json").unlink()
    main("run tiny --only uniform --jobs 1".split())
    after = runs(folder)
    assert {name for name in after if after[name] != before[name]} == {run.name}
    assert "finished" in (run.with_name(f"{run.name}.log")).read_text()


def test_settings_make_a_trial_with_a_folder_and_a_record_of_its_own(folder):
    trial = load_experiment("tiny", {"train.max_epochs": 2, "model.hidden_size": 24})
    config = trial.run("additive", 1).config
    assert (config.train.max_epochs, config.model.hidden_size) == (2, 24)
    assert trial.directory == Path("runs/lab/tiny-trial")
    assert trial.record == str(folder / "runs/lab/tiny-trial/record.json")
    trial.arms["additive"].record = "docs/records/kept.json"
    assert folder / "runs/lab/tiny-trial" in trial.arm_path("additive").parents
    with pytest.raises(UserError, match="additive"):
        trial.results()


def test_points_are_the_scores_of_the_report(folder):
    record = read_json(folder / TINY["record"])
    report = read_json(folder / "runs/lab/tiny/report.json")
    former = read_json(ROOT / TINY["record"])
    assert_like(
        record,
        former,
        without=("vectors", "points", "tuning", "dropout", "is_equal", "resampling", "minutes"),
    )
    for key in ("scores", "attention"):
        assert_like(record["points"][0][key]["uniform"], former["points"][0][key]["uniform"])
    for point, one in zip(record["points"], report["sets"], strict=True):
        measure = one["measures"][0]
        group = measure["groups"][1]
        score = point["scores"]["uniform"]["bleu"]
        assert [score[key] for key in ("mean", "low", "high")] == [
            group[key] for key in ("mean", "low", "high")
        ]
        assert score["p"] == group["paired_bootstrap"]["p_value"]
        assert score["by_seed"] == [run["score"] for run in measure["runs"][2:]]
    assert record["points"][1]["mean_length"] == pytest.approx(
        2 * record["points"][0]["mean_length"]
    )


def test_levers_have_gains_over_the_baseline_and_test_sets_where_published(folder):
    options = {"split": "valid", "beam_size": 1, "metric": ["bleu"]}
    arms = load_experiment("tiny").arms
    arms["additive"].record = "levers/kept.json"
    records = written("levers", record="levers", arms=arms, evaluate=options)
    additive, uniform = records["levers/kept.json"], records["levers/uniform.json"]
    former = read_json(
        RECORDS / "levers" / "embedding-0.0-encoder-0.0-readout-0.0-label-smooth-6c98f4.json"
    )
    assert_like(uniform, former, without=("settings", "without", "merge_below"))
    assert_like(
        records["additive.json"],
        read_json(RECORDS / "multi30k.json"),
        without=("best", "python", "paired_bootstrap", "merge_below"),
    )
    assert "against" not in additive
    assert [run["seed"] for run in additive["runs"]] == [1, 2]
    means = [
        sum(run["validation"]["bleu"] for run in record["runs"]) / 2
        for record in (additive, uniform)
    ]
    assert uniform["against"]["gain"] == pytest.approx(means[1] - means[0], abs=0.02)
    assert (additive["chosen_on"], "chosen_on" in uniform) == ("validation", False)


def test_mechanisms_have_a_record_per_arm_that_grows(folder):
    options = {"evaluate": {"metric": ["bleu"]}, "record": "mechanisms"}
    records = written("mechanisms", **options)
    assert_like(
        records["mechanisms/additive.json"],
        read_json(RECORDS / "mechanisms" / "attention-additive.json"),
        without=("multi30k", "speed", "moves"),
    )
    known = {"seed": 7, "trained_at": "before"}
    path = folder / "mechanisms" / "additive.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**records["mechanisms/additive.json"], "captions": [known]}))
    runs = written("mechanisms", **options)["mechanisms/additive.json"]["captions"]
    assert [run["seed"] for run in runs] == [1, 2, 7]


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], "run tiny --only nothing".split(), "run tiny --seeds 3-1".split()],
)
def test_unknown_words_are_refused(folder, arguments):
    with pytest.raises(UsageError):
        main(arguments)


def test_a_difference_of_settings_names_what_an_objective_changes():
    base = settings_of(load_config(["multi30k"]))
    late = settings_of(load_config(["multi30k"], ["train.objectives={coverage: {end: 0.5}}"]))
    changed = difference(base, late)
    assert changed["train.objectives.coverage.end"] == 0.5
    assert all(key.startswith("train.objectives.coverage.") for key in changed)
    same = settings_of(load_config(["multi30k"], ["seed=3", "train.device=cpu"]))
    assert difference(base, same) == {}


def test_a_training_that_ended_early_is_not_called_finished(tmp_path):
    times = {"minutes": 1.0, "update": 5, "epoch": 1, "best_score": 1.0, "best_update": 5}
    (tmp_path / "train.log").write_text(
        "INFO torch 2.6, on cpu, 1 thread, fp32\nINFO 461 parameters, 9 pairs\n"
    )
    for name, is_finished in (("max_epochs", True), ("patience", False)):
        reason = f"train.{name}=1 reached"
        (tmp_path / "finished.json").write_text(json.dumps({**times, "reason": reason}))
        trained = read_training(tmp_path)
        assert trained["is_finished"] == is_finished
        assert trained["num_parameters"] == 461
        assert trained["precision"] == "fp32"
    (tmp_path / "train.log").write_text("starts\n")
    with pytest.raises(UserError, match=r"train\.log"):
        read_training(tmp_path)
