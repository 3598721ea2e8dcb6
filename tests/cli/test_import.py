"""`--import`: the variants of `examples/` train, are resumed and translate from a folder of the
user's own."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.__main__ import run
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.run import Run
from tests.cli.command_line import assert_fails, outputs, set_options
from tests.train.conftest import toy_settings, write_toy_corpus

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ALL = [
    "model.encoder.name=variants:Bigrams",
    "model.attention.name=variants:Distance",
    "model.attention.normalizer=variants",
    "model.decoder.name=variants:Late",
    "model.output.name=variants:Scaled",
    "train.objectives={'variants:Small': {weight: 0.5, options: {power: 4}}}",
]
OTHERS = [
    "model.encoder.name=bidirectional",
    "model.encoder.cell=variants:SSRU",
    "model.decoder.cell=variants:SSRU",
    "model.attention.name=gated_pair",
    "model.attention.options.first={name: additive, options: {attention_size: 5}}",
    "model.attention.options.second={name: location, options: {num_filters: 3}}",
    "train.objectives={confidence_penalty: {weight: 0.1}}",
]
PAPERS = ["model.attention.name=sentinel", "model.encoder.name=pyramid"]
SHORT = [
    "-c",
    "base",
    "--set=train.validation.num_pairs=4",
    *set_options(toy_settings(Path("toy"))),
    "--set=train.max_updates=2",
]
"""options of a short training"""
MODULES = (
    "variants",
    "gated_pair",
    "confidence_penalty",
    "cosine",
    "sentinel",
    "pyramid",
    "teacher",
    "bag_of_words",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder with the files and a corpus; what a test imports is unknown to the
    next one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    for module in MODULES:
        shutil.copy(EXAMPLES / f"{module}.py", tmp_path)
    write_toy_corpus(Path("toy"))
    yield tmp_path
    for module in (*MODULES, "broken"):
        sys.modules.pop(module, None)


def parts(model):
    """The classes of a model's modules and the name of its normalizer, where the example defines
    them."""
    used = [type(module) for module in model.modules()]
    if hasattr(model.decoder.attention, "normalizer"):
        used.append(model.decoder.attention.normalizer)
    return {each.__name__ for each in used if each.__module__ in MODULES}


@pytest.mark.parametrize(
    ("own", "names", "objective"),
    [
        (ALL, {"Bigrams", "Distance", "weights", "Late", "Scaled"}, "variants:Small"),
        (OTHERS, {"SSRU", "GatedPair"}, "confidence_penalty"),
    ],
    ids=["variants", "others"],
)
def test_variants_from_outside_train_are_resumed_and_translate(
    folder, monkeypatch, own, names, objective, capsys
):
    imports = [f"--import={module}" for module in MODULES]
    command = ["train", "--run-dir", "mine", *imports]
    assert run([*command, *SHORT, *set_options(own)]) == 0
    assert run([*command, "--resume", "--set", "train.max_updates=4"]) == 0
    assert Run("mine").is_finished()
    assert objective in Path("mine/metrics.jsonl").read_text("utf-8")
    assert names <= parts(load("mine", "cpu").model)
    options = ["--run", "mine", *imports, "--beam-size", "2"]
    assert len(outputs(capsys, "translate", *options, "Hund Katze")) == 1
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    for module in MODULES:
        sys.modules.pop(module, None)
    for command in ("translate --run mine Hund", "evaluate mine"):
        assert_fails(capsys, *command.split(), code=2, message="error: mine: model.")
    assert not {*MODULES} & {*sys.modules}


def test_a_sentinel_and_a_pyramid_train_are_resumed_and_drawn(folder, capsys):
    imports = ["--import=sentinel", "--import=pyramid"]
    train = ["train", "--run-dir", "mine", *imports]
    assert run([*train, *SHORT, *set_options(PAPERS)]) == 0
    assert run([*train, "--resume", "--set", "train.max_updates=4"]) == 0
    translate = ["translate", "--run", "mine", *imports, "Hund Katze"]
    [line] = outputs(capsys, *translate, "--format", "json", "--attention", "map.svg")
    weights = np.array(json.loads(line)["weights"])
    assert weights.shape[1] == len("Hund Katze") + 1  # characters are tokens
    np.testing.assert_allclose(weights[:, 0], weights[:, 1])  # they share a position
    assert (weights.sum(axis=1) < 0.999).all()
    assert "<svg" in Path("map.svg").read_text("utf-8")
    evaluate = ["evaluate", "mine", *imports, "--split", "valid", "--json", "scores.json"]
    assert run([*evaluate, "--report", "report.html"]) == 0
    for option in ("output.name=copy", "attention.name=hierarchical", "output.name=marginal"):
        other = [*train, "--overwrite", *SHORT, *set_options([PAPERS[1], f"model.{option}"])]
        assert_fails(capsys, *other, code=2, message="pyramid")
    assert_fails(capsys, *translate, "--unk", "copy", code=2, message="unk")


def test_a_metric_from_outside_chooses_the_best_model_and_is_reported(folder, monkeypatch, capsys):
    name = "bag_of_words:BagOfWords"
    imported = "--import=bag_of_words"
    chosen = set_options([f"train.validation.metric={name}"])
    options = "--split valid --by-length 3,5 --json scores.json".split()
    try:
        assert run(["train", "--run-dir", "mine", imported, *SHORT, *chosen]) == 0
        last = Path("mine/metrics.jsonl").read_text("utf-8").splitlines()[-1]
        assert json.loads(last)["metric"] == name
        assert run(["train", "--run-dir", "other", *SHORT, "--set", "seed=9"]) == 0
        evaluate = ["evaluate", "mine", "other", imported, *options]
        assert run([*evaluate, "--metric", name, "--report", "report.html"]) == 0
        assert name in Path("scores.json").read_text("utf-8")
        assert "bag of words" in Path("report.html").read_text("utf-8")
    finally:
        METRICS.pop(name, None)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    assert_fails(capsys, "evaluate", "mine", code=2, message="--import bag_of_words")


def test_a_teacher_trains_a_student_of_its_vocabulary(folder, capsys):
    teach = "train.objectives={teacher: {weight: 1, options: {run: first}}}"
    assert run(["train", "--run-dir", "first", *SHORT]) == 0
    student = ["train", "--run-dir", "mine", "--import=teacher", *SHORT, *set_options([teach])]
    assert run([*student, "--set", "data.vocab_from=first", "--set", "train.max_updates=4"]) == 0
    assert '"teacher":' in Path("mine/metrics.jsonl").read_text("utf-8")
    small = ["--overwrite", "--set", "data.vocab.max_size=7"]
    assert_fails(capsys, *student, *small, code=2, message="data.vocab_from=first")


def test_a_method_and_a_scorer_from_outside_are_known_to_every_command(folder, capsys):
    named = "--import variants --method variants:last_minute".split()
    own = ["--set", "share=0.9", "--set", 'scorers={"variants:Long": {bonus: 2}}']
    configured = [
        "search.method=variants:last_minute",
        "search.share=0.8",
        "search.max_length_ratio=2",
    ]
    train = "train --run-dir mine --import variants".split()
    assert run([*train, *SHORT, *set_options(configured)]) == 0
    translate = ["translate", "--run", "mine"]
    for options in (["--import", "variants"], [*named, *own]):
        [text] = outputs(capsys, *translate, *options, "Hund Katze")
        assert len(text) >= 15  # characters are tokens
    evaluate = ["evaluate", "mine", "--split", "valid", *named, *own, "--reuse-hypotheses"]
    assert "BLEU" in outputs(capsys, *evaluate)[0]
    assert list(Path("mine/hyps").glob("valid.*share0.9*.txt"))
    wrong = [*translate, *named, "--set", "sahre=1", "Hund"]
    assert_fails(capsys, *wrong, code=2, message="search.sahre")


BROKEN = """
import torch
from seq2seq_attn.metrics.edits import OwnMetric
from seq2seq_attn.model.attention.additive import Additive
from seq2seq_attn.search.base import Scorer
from seq2seq_attn.train.objectives.base import Objective

class Vocabularies(Objective):
    def term(self, outputs):
        return {}["dog"]

class Lookup(Scorer):
    def rescore(self, scores, tokens, state):
        return {}["dog"]

class Shape(Objective):
    def term(self, outputs):
        return outputs.hidden_TBH

class Count(OwnMetric):
    title = "count"
    def count(self, hypothesis, references):
        return {}["dog"]
    def score(self, sums):
        return 0.0

class Words(Count):
    def count(self, hypothesis, references):
        return {"dog": 1}

class Division(Additive):
    def step(self, query_BH, memory, state):
        return 1 / 0
"""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["train.objectives={'broken:Vocabularies': {}}"], "broken.py:10: KeyError: 'dog'"),
        (["train.objectives={'broken:Shape': {}}"], "objective Shape"),
        (["search.scorers={'broken:Lookup': {}}"], "broken.py:14: KeyError: 'dog'"),
        (["train.validation.metric=broken:Count"], "broken.py:23: KeyError: 'dog'"),
        (["model.attention.name=broken:Division"], "broken.py:33: ZeroDivisionError"),
        (["train.validation.metric=broken:Words"], "perhaps caused by"),
    ],
)
def test_an_error_of_a_variant_is_shown_as_the_variants(options, message, monkeypatch, capsys):
    Path("broken.py").write_text(BROKEN, "utf-8")
    for name in ("broken:Count", "broken:Words"):
        monkeypatch.setitem(METRICS, name, METRICS["bleu"])  # so that it is taken out after
        del METRICS[name]
    train = ["train", "--run-dir", "mine", "--import=broken", *SHORT, *set_options(options)]
    assert_fails(capsys, *train, code=1, message=message)
    assert run([*train, "--run-dir", "other", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
