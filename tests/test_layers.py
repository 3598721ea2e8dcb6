"""Imports point one way, and help is cheap."""

import re
import subprocess
import sys

import pytest

from scripts.laboratory.house import (
    ORDER,
    PACKAGE,
    beyond_limits,
    cycles_in,
    figures,
    import_graph,
    imports,
    measure,
    module_of,
    own_imports,
    sources,
    upward_imports,
)

FILES = sources()


def test_every_file_has_a_layer():
    assert [path for path in FILES if module_of(path)[0] not in ORDER] == []


@pytest.mark.parametrize("folder", ["text", "metrics"])
def test_text_and_metrics_do_without_networks(folder):
    for path in (PACKAGE / folder).rglob("*.py"):
        assert [name for name in imports(path) if name[:2] in {("torch", "nn")}] == [], path


def test_no_attention_variant_imports_another():
    folder = PACKAGE / "model" / "attention"
    variants = {path.stem for path in folder.glob("*.py")} - {"__init__", "base"}
    assert variants
    for name in variants:
        used = {
            module[2]
            for module in own_imports(folder / f"{name}.py")
            if module[:2] == ("model", "attention")
        }
        assert used & (variants - {name}) == set()


def test_spacy_torchtext_and_sentencepiece_stand_behind_their_files():
    users = {("/".join(module_of(path)), name[0]) for path in FILES for name in imports(path)}
    assert {user for user in users if user[1] in ("torchtext", "spacy", "sentencepiece")} == {
        ("text/vocab", "torchtext"),  # data/buckets takes it from there
        ("text/tokenizers/spacy", "spacy"),
        ("text/tokenizers/sentencepiece", "sentencepiece"),
    }


def run_and_list_modules(*arguments):
    """A command in a process of its own, and the packages that it has imported at its end."""
    code = "import sys; from seq2seq_attn.__main__ import run; code = run(sys.argv[1:])"
    code += "; print('modules:', *sys.modules)"
    command = [sys.executable, "-c", f"{code}; sys.exit(code)", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    return done, set(done.stdout.rpartition("modules:")[2].split())


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"]])
def test_help_imports_nothing_heavy(arguments):
    done, modules = run_and_list_modules(*arguments)
    assert done.returncode == 0, done.stderr
    assert not modules & {"torch", "numpy", "spacy", "torchtext", "matplotlib", "sacrebleu"}
    assert not modules & {"starlette", "uvicorn", "huggingface_hub"}


def test_a_mistyped_run_is_refused_before_torch_is_loaded():
    done, modules = run_and_list_modules("translate", "--run", "no/run", "x")
    assert done.returncode == 1
    assert "no/run" in done.stderr
    assert "torch" not in modules


def test_imports_point_down_and_form_no_cycle():
    assert upward_imports(import_graph()) == []
    assert cycles_in(import_graph(at_runtime=True)) == []


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="since Python 3.12, what an f-string holds is tokens"
)
def test_amount_and_density_stay_within_their_limits():
    assert beyond_limits(figures()) == {}


def test_measure_counts_neither_layout_nor_explanation(tmp_path):
    dense = "a, b = x, y\nc = [d for d in e if (f := d)]\n"
    explained = f'"""A module.\n\nMore."""\n\n# Two values.\n{dense}"""what c is"""\n'
    counted = []
    for name, text in {"dense": dense, "explained": explained}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(text)
        counted.append(measure(tmp_path / name))
    assert counted[0] == counted[1]
    assert counted[0]["tokens"] == 7 + 15
    assert counted[0]["lines"] == 2
    assert counted[0]["tuples"] == counted[0]["walrus"] == counted[0]["comprehensions"] == 1


def test_a_cycle_is_found():
    graph = {
        ("roof",): {("hall",), ("cellar",)},
        ("hall",): {("cellar",)},
        ("cellar",): set[tuple[str, ...]](),
    }
    assert cycles_in(graph) == []
    assert cycles_in({**graph, ("cellar",): {("roof",)}}) != []


def test_the_whole_attention_decoder_is_five_short_files():
    guide = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    named = re.findall(r"^\| \[(model/\S+\.py)\]", guide, re.MULTILINE)
    assert [name.split("/")[1] for name in named] == [
        "decoder",
        "decoder",
        "attention",
        "normalizer",
        "output",
    ]
    assert sum(len((PACKAGE / name).read_text("utf-8").splitlines()) for name in named) <= 330
