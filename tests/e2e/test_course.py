"""The course: chapters that parse and use the public API alone, and, in the slow tier, execute."""

import ast
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import seq2seq_attn

ROOT = Path(__file__).resolve().parents[2]
LEARN = ROOT / "docs" / "learn"
CHAPTERS = sorted(LEARN.glob("[0-9]*.py"))
CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
LIBRARIES = {"matplotlib", "numpy", "sacrebleu", "torch"}
MAX_CPU_S = 2 * 3 * 60
"""three minutes of two cores"""


def cells(path: Path) -> list[tuple[str, str]]:
    """The header and the text of each cell."""
    _, *parts = CELL.split(path.read_text(encoding="utf-8"))
    return list(zip(parts[::2], parts[1::2], strict=True))


def names_of_package(tree: ast.AST) -> Iterator[str]:
    """The names that a file takes from the package, as dotted names without `seq2seq_attn`."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                yield from (
                    alias.name for alias in aliases if alias.name.startswith("seq2seq_attn.")
                )
            case ast.ImportFrom(module=str(module), names=aliases) if (
                module.partition(".")[0] == "seq2seq_attn"
            ):
                yield from (
                    f"{module}.{alias.name}".removeprefix("seq2seq_attn.") for alias in aliases
                )
            case ast.Attribute(value=ast.Name(id="seq2seq_attn"), attr=name):
                yield name


def test_there_are_four_chapters_in_order():
    assert [path.name[0] for path in CHAPTERS] == ["1", "2", "3", "4"]
    links = [
        re.findall(r"\]\((\d\S+\.py)\)", path.read_text(encoding="utf-8"))[-1:]
        for path in CHAPTERS[:-1]
    ]
    assert links == [[path.name] for path in CHAPTERS[1:]]


@pytest.mark.parametrize("path", [*CHAPTERS, LEARN / "course.py"], ids=lambda path: path.stem)
def test_a_chapter_uses_the_public_api_alone(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert {*names_of_package(tree)} <= {*seq2seq_attn.__all__}
    imported = {
        alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    imported |= {
        str(node.module).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    }
    assert imported <= {*sys.stdlib_module_names, *LIBRARIES, "course", "seq2seq_attn"}
    private = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)
    ]
    assert path.stem == "course" or private == []


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_each_exercise_has_a_hidden_answer_that_checks_itself(path):
    parts = cells(path)
    asked = [
        number
        for number, (_, text) in enumerate(parts)
        if re.search(r"^# \*\*\d\. ", text, re.MULTILINE)
    ]
    answers = [number for number, (header, _) in enumerate(parts) if "hide-cell" in header]
    assert len(asked) >= 3
    assert answers == [number + 1 for number in asked]
    for number in answers:
        header, text = parts[number]
        assert '"source_hidden": true' in header
        assert text.startswith("# Answer: ")
        assert "assert " in text


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A project folder with the embedded corpus alone, where chapters leave their runs for the next
    ones."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "data").mkdir()
    (folder / "data" / "captions").symlink_to(ROOT / "data" / "captions")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_executes_in_three_minutes_of_two_cores(path, folder):
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, path], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    cpu_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    print(f"{path.stem}: {time.monotonic() - started:.0f} s, {cpu_s:.0f} s of CPU")
    assert cpu_s < MAX_CPU_S
