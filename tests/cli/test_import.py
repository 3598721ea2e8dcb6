"""`--import`: the variants of `examples/` train, are resumed and translate from a folder of the
user's own."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seq2seq_attn import load
from seq2seq_attn.__main__ import run
from seq2seq_attn.run import Run
from tests.train.conftest import toy_settings, write_toy_corpus

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PAIR = "{first: {name: additive, options: {attention_size: 5}}, second: {name: location, options: {num_filters: 3}}}"
ALL = [
    *("model.encoder.name=variants:Bigrams", "model.attention.name=variants:Distance"),
    *(
        "model.attention.normalizer=variants",
        "model.decoder.name=variants:Late",
        "model.output.name=variants:Scaled",
    ),
    "train.objectives={'variants:Small': {weight: 0.5, options: {power: 4}}}",
]
OTHERS = [
    *(
        "model.encoder.name=bidirectional",
        "model.encoder.cell=variants:SSRU",
        "model.decoder.cell=variants:SSRU",
    ),
    *("model.attention.name=gated_pair", f"model.attention.options={PAIR}"),
    "train.objectives={confidence_penalty: {weight: 0.1}}",
]
MODULES = ("variants", "gated_pair", "confidence_penalty", "cosine")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Iterator[Path]:
    """An empty current folder with the files and a corpus; what a test imports is unknown to the
    next one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    for module in MODULES:
        shutil.copy(EXAMPLES / f"{module}.py", tmp_path)
    write_toy_corpus(Path("toy"))
    yield tmp_path
    for module in MODULES:
        sys.modules.pop(module, None)


def parts(model: Any) -> set[str]:
    """The classes of a model's modules and the name of its normalizer, where the example defines
    them."""
    own = [type(module) for module in model.modules()]
    normalizer = getattr(model.decoder.attention, "normalizer", None)
    return {
        part.__name__
        for part in (*own, normalizer)
        if part is not None and part.__module__ in MODULES
    }


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
    settings = [
        *toy_settings(Path("toy")),
        *own,
        "train.validation.num_pairs=4",
        "train.max_updates=2",
    ]
    imports = [word for module in MODULES for word in ("--import", module)]
    command = ["train", "--run-dir", "mine", *imports]
    assert (
        run(
            [*command, "-c", "base", *(word for setting in settings for word in ("--set", setting))]
        )
        == 0
    )
    assert run([*command, "--resume", "--set", "train.max_updates=4"]) == 0
    assert Run("mine").is_finished()
    assert objective in Path("mine/metrics.jsonl").read_text("utf-8")
    assert names <= parts(load("mine", "cpu").model)
    capsys.readouterr()
    assert run(["translate", "--run", "mine", *imports, "--beam-size", "2", "Hund Katze"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    for module in MODULES:
        sys.modules.pop(module, None)
    for command in ("translate --run mine Hund".split(), ["evaluate", "mine"]):
        assert run(command) == 2
        message = capsys.readouterr().err.splitlines()[-1]
        assert message.startswith("error: mine: model.")
        assert "--import " in message
    assert not {*MODULES} & {*sys.modules}


def test_a_method_and_a_scorer_from_outside_are_known_to_every_command(folder, capsys):
    named = "--import variants --method variants:last_minute".split()
    own = ["--set", "share=0.9", "--set", 'scorers={"variants:Long": {bonus: 2}}']
    settings = [*toy_settings(Path("toy")), "train.validation.num_pairs=4", "train.max_updates=2"]
    configured = [
        "search.method=variants:last_minute",
        "search.share=0.8",
        "search.max_length_ratio=2",
    ]
    train = "train --run-dir mine -c base --import variants".split()
    assert (
        run(
            [*train, *(word for setting in [*settings, *configured] for word in ("--set", setting))]
        )
        == 0
    )
    capsys.readouterr()
    assert run(["translate", "--run", "mine", "--import", "variants", "Hund Katze"]) == 0
    as_configured = capsys.readouterr().out
    assert run(["translate", "--run", "mine", *named, *own, "Hund Katze"]) == 0
    assert (
        min(len(out.strip()) for out in (as_configured, capsys.readouterr().out)) >= 15
    )  # characters are tokens
    assert run(["evaluate", "mine", "--split", "valid", *named, *own, "--reuse-hypotheses"]) == 0
    assert "BLEU" in capsys.readouterr().out
    assert list(Path("mine/hyps").glob("valid.*share0.9*.txt"))
    assert run(["translate", "--run", "mine", *named, "--set", "sahre=1", "Hund"]) == 2
    assert "search.sahre" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_an_exception_inside_a_variant_is_shown_with_its_file_and_line(capsys):
    text = Path("cosine.py").read_text("utf-8")
    before, call, after = text.partition("sharpness * torch.bmm(")
    Path("cosine.py").write_text(f"{before}{call}1 / 0, {after}", "utf-8")
    place = f"cosine.py:{before.count(chr(10)) + 1}"
    train = "train -c base --import cosine --set model.attention.name=cosine".split()
    for setting in toy_settings(Path("toy")):
        train += ["--set", setting]
    assert run([*train, "--run-dir", "a"]) == 1
    message = capsys.readouterr().err.splitlines()[-1]
    assert place in message
    assert "ZeroDivisionError" in message
    assert "unexpected" not in message
    assert run([*train, "--run-dir", "b", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
