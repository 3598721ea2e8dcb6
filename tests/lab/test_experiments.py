"""Every experiment fits the library: its arms can be trained, differ, and are as large as they
should be."""

import inspect
from functools import cache

import pytest
import yaml

import seq2seq_attn
from scripts.laboratory import experiment as experiments
from scripts.laboratory.experiment import load_experiment, names
from scripts.laboratory.harness.records import ROOT
from scripts.laboratory.runner import stages
from seq2seq_attn.config import SearchConfig, load_config
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.build import build_model, count_parameters
from seq2seq_attn.train.check import check_config

experiment = cache(load_experiment)
ARMS = [(name, arm) for name in names() for arm in experiment(name).arms]


def run(name, arm):
    return experiment(name).run(arm, 1)


@pytest.mark.parametrize(("name", "arm"), ARMS)
def test_every_arm_can_be_trained(name, arm):
    own = run(name, arm)
    without_texts = {"data.extra": [], "train.start_from": None}  # which the arms before it make
    check_config(load_config(own.configs, own.settings, without_texts))


@pytest.mark.parametrize("name", names())
def test_an_experiment_is_a_question_with_different_arms_a_record_and_a_page(name):
    own = experiment(name)
    assert own.question.endswith("?")
    assert own.baseline in own.arms
    settings = [str(run(name, arm).config.flat() | {"name": ""}) for arm in own.arms]
    assert len(set(settings)) == len(settings)
    assert (ROOT / own.record).exists()
    assert (ROOT / own.page).is_file()
    options = {*inspect.signature(seq2seq_attn.evaluate).parameters, *SearchConfig.model_fields}
    assert own.evaluate.keys() <= options


@pytest.mark.parametrize("name", ["bottleneck-joined", "bottleneck-single", "bottleneck-multi30k"])
def test_arms_of_the_bottleneck_have_as_many_parameters_and_the_same_dropout(name):
    sizes = {"num_source_ids": 1_000, "num_target_ids": 1_000}
    if "multi30k" in name:
        sizes = {"num_source_ids": 5_000, "num_target_ids": 4_000}
    models = {arm: run(name, arm).config.model for arm in experiment(name).arms}
    counts = {arm: count_parameters(build_model(model, **sizes)) for arm, model in models.items()}
    for arm, count in counts.items():
        assert (abs(count / counts["additive"] - 1) < 0.03) == (arm != "fixed-wide"), arm
        dropout = models[arm].attention.options.get("dropout", models[arm].dropout.encoder)
        assert dropout == models[arm].dropout.encoder, arm


def test_what_makes_texts_is_trained_before_what_reads_them():
    own = experiment("multi30k-extra")
    assert stages(own, list(own.arms)) == [
        ["multi30k", "de-en", "en-de"],
        ["multi30k-task2"],
        ["multi30k-extra"],
    ]
    own = experiment("distil")
    assert stages(own, list(own.arms)) == [["multi30k"], ["multi30k-distilled"]]


def test_every_variant_is_in_the_bench_of_mechanisms():
    own = experiment("mechanisms")
    files = {
        f"{axis}/{path.stem}"
        for axis in own.axes
        for path in (ROOT / "configs" / axis).glob("*.yaml")
    }
    assert set(own.leave_out) < files
    assert {name for arm in own.arms.values() for name in arm.configs} == files - set(own.leave_out)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"sceds": "1-3"}, "sceds"),
        ({"schema": "point"}, "schema"),
        ({"arms": {"a": {"is_published": True}}}, "chosen_on"),
    ],
)
def test_a_wrong_experiment_is_refused(tmp_path, monkeypatch, changes, named):
    valid = {
        "question": "?",
        "arms": {"a": {}},
        "schema": "points",
        "record": "a.json",
        "page": "a.md",
    }
    monkeypatch.setattr(experiments, "FOLDER", tmp_path)
    (tmp_path / "x.yaml").write_text(yaml.safe_dump({**valid, **changes}))
    with pytest.raises(UsageError, match=named):
        load_experiment("x")
    with pytest.raises(UsageError, match="no-such"):
        load_experiment("no-such")
