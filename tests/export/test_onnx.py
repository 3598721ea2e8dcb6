"""A run written as ONNX is translated by onnxruntime as by the package: with the example, which
uses numpy alone."""

import json
import subprocess
import sys
from types import SimpleNamespace

import onnx
import pytest
from onnx import helper

from seq2seq_attn import load
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.errors import UsageError
from seq2seq_attn.export import onnx as onnx_export
from seq2seq_attn.export.model_graphs import Graphs
from seq2seq_attn.export.onnx import export_onnx
from seq2seq_attn.files import read_json
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer
from tests import ROOT
from tests.processes import output_of
from tests.toy_run import make_toy_run, toy_config

LINES = [
    "Ein Hund rennt.",
    "Zwei Männer",
    "das Kind schla\u0308ft\ufeff",
]  # the package splits lines longer than data.max_length
SIDE = {"tokenizer": "spacy", "language": "de", "lowercase": True}
EXAMPLE = ROOT / "examples" / "translate_onnx.py"


@pytest.mark.parametrize(
    "tokenizer", ["sentencepiece", pytest.param("characters", marks=pytest.mark.slow)]
)
def test_the_example_translates_as_the_package_does(tmp_path, tokenizer):
    config = toy_config(tokenizer=tokenizer)
    config.data.tokenizer.lowercase = tokenizer == "characters"
    run = make_toy_run(tmp_path / "run", config)
    folder = tmp_path / "run.onnx"
    assert run_command(["export", str(run.path), "-o", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json",
        "model.json",
        "prepare.onnx",
        "step.onnx",
    ]
    about = read_json(folder / "model.json")
    assert about["source"]["tokens"] == run.source_vocab.tokens
    expected = [
        translation.text for translation in load(run.path, "cpu").translate(LINES, beam_size=1)
    ]
    code = "import sys, pathlib; from translate_onnx import translate\n"
    code += "for line in sys.argv[2:]: print(translate(pathlib.Path(sys.argv[1]), line))"
    command = [sys.executable, "-c", code, str(folder), *LINES]
    assert output_of(command, cwd=EXAMPLE.parent).splitlines() == expected


def test_the_example_tokenizes_words_by_the_rules_of_the_run():
    line = "Ein Mann, z.B. Paul, schläft nicht: er liest!"
    tokenizer = SpacyTokenizer("de", lowercase=True)
    code = f"from translate_onnx import tokenize; print(tokenize({line!r}, {SIDE!r}))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=EXAMPLE.parent, capture_output=True, text=True)
    assert done.stdout.strip() == str(tokenizer.tokenize(line)), done.stderr


@pytest.mark.parametrize("line", ["Ein Hund. Eine Frau.", "Es wiegt 3.5 kg."])
def test_the_example_warns_about_several_sentences(line):
    about = {"lines": {"one_sentence": True}}
    code = (
        f"from translate_onnx import warn_about_sentences; warn_about_sentences({about}, {line!r})"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=EXAMPLE.parent, capture_output=True, text=True)
    assert ("several sentences" in done.stderr) == (line == "Ein Hund. Eine Frau.")


def test_the_example_refuses_graphs_of_two_exports(tmp_path):
    (tmp_path / "prepare.onnx").write_bytes(b"old")
    (tmp_path / "manifest.json").write_text(json.dumps({"prepare.onnx": ["0" * 64]}))
    command = [sys.executable, str(EXAMPLE), str(tmp_path), "x"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "prepare.onnx" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["prepare", "step"])
def test_graphs_that_cannot_be_run_are_not_written(tmp_path, monkeypatch, name):
    written = [make_graph("NoSuch" if each == name else "Identity") for each in ("prepare", "step")]
    graphs = Graphs(None, None, ["h"], [])
    monkeypatch.setattr(onnx_export, "export_graphs", lambda model: graphs)
    monkeypatch.setattr("torch.onnx.export", lambda *arguments, **options: written.pop(0))
    run = make_toy_run(tmp_path / "run", toy_config())
    with pytest.raises(UsageError, match="NoSuch"):
        export_onnx(run, tmp_path / "run.onnx")
    assert not (tmp_path / "run.onnx").exists()


def make_graph(operation):
    """A graph of one operation on the source ids, which can be saved."""
    source, result = (
        helper.make_tensor_value_info(each, onnx.TensorProto.INT64, None)
        for each in ("source_ids", "h")
    )
    node = helper.make_node(operation, ["source_ids"], ["h"])
    model = helper.make_model(helper.make_graph([node], "graph", [source], [result]))
    return SimpleNamespace(save=lambda path: onnx.save(model, path))


def test_a_run_that_cannot_be_exported_writes_nothing(tmp_path):
    config = toy_config()
    config.model.output.name = "history_pointer"
    run = make_toy_run(tmp_path / "run", config)
    with pytest.raises(UsageError, match="earlier target tokens"):
        export_onnx(run, tmp_path / "run.onnx")
    assert not (tmp_path / "run.onnx").exists()
