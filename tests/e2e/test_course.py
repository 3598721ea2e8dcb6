"""The course: chapters that parse and use the public API alone, and, in the slow tier, execute."""

import ast
import itertools
import os
import re
import resource
import sys

import pytest

import seq2seq_attn
from tests import ROOT
from tests.processes import output_of

LEARN = ROOT / "docs" / "learn"
CHAPTERS = sorted(LEARN.glob("[0-9]*.py"))
CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
LIBRARIES = {"matplotlib", "numpy", "sacrebleu", "torch"}
MAX_CPU_S = 2 * 3 * 60
"""three minutes of two cores"""


def cells(path):
    """The header and the text of each cell."""
    _, *parts = CELL.split(path.read_text("utf-8"))
    return list(zip(parts[::2], parts[1::2], strict=True))


def test_there_are_four_chapters_in_order():
    assert [path.name[0] for path in CHAPTERS] == ["1", "2", "3", "4"]
    for path, next_path in itertools.pairwise(CHAPTERS):
        links = re.findall(r"\]\((\d\S+\.py)\)", path.read_text("utf-8"))
        assert links[-1] == next_path.name


@pytest.mark.parametrize("path", [*CHAPTERS, LEARN / "course.py"], ids=lambda path: path.stem)
def test_a_chapter_uses_the_public_api_alone(path):
    libraries = {*sys.stdlib_module_names, *LIBRARIES, "course"}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names=[alias]) if alias.name != "seq2seq_attn":
                assert alias.name.partition(".")[0] in libraries
            case ast.ImportFrom(module=name):
                assert name.partition(".")[0] in libraries
            case ast.Attribute(value=ast.Name(id="seq2seq_attn"), attr=name):
                assert name in seq2seq_attn.__all__
            case ast.Attribute(attr=name) if path.stem != "course":
                assert not re.match("_[^_]", name)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_each_exercise_has_a_hidden_answer_that_checks_itself(path):
    num_asked = 0
    is_asked = False
    for header, text in cells(path):
        assert ("hide-cell" in header) == is_asked
        if is_asked:
            assert '"source_hidden": true' in header
            assert text.startswith("# Answer: ")
            assert "assert " in text
        is_asked = re.search(r"^# \*\*\d\. ", text, re.MULTILINE) is not None
        num_asked += is_asked
    assert num_asked >= 3


@pytest.fixture(scope="module")
def folder(module_path):
    """A project folder with the embedded corpus alone, where chapters leave their runs for the next
    ones."""
    (module_path / "data").mkdir()
    (module_path / "data" / "captions").symlink_to(ROOT / "data" / "captions")
    return module_path


@pytest.mark.slow
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_executes_in_three_minutes_of_two_cores(path, folder):
    before_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    output_of([sys.executable, path], cwd=folder, env=environment)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before_s < MAX_CPU_S
