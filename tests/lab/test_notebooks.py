"""The notebooks of the course, with and without answers."""

import re

import jupytext
import pytest

from scripts.laboratory.pages import notebooks
from scripts.laboratory.pages.site import chapters

NAMES = [f"{chapter.stem}.ipynb" for chapter in chapters()]


@pytest.fixture(scope="module")
def folder(module_path):
    assert notebooks.write(module_path) == 0
    return module_path


@pytest.mark.parametrize("name", NAMES)
def test_only_one_of_the_notebooks_has_the_answers(folder, name):
    answered = jupytext.read(folder / notebooks.WITH / name)
    asked = jupytext.read(folder / notebooks.WITHOUT / name)
    assert len(answered.cells) == len(asked.cells)
    num_answers = sum("# Answer: " in cell.source for cell in answered.cells)
    assert num_answers >= 3
    assert sum(cell.source == "# your answer" for cell in asked.cells) == num_answers
    assert not any("# Answer: " in cell.source for cell in asked.cells)


@pytest.mark.parametrize("name", NAMES)
def test_a_link_leads_to_a_notebook_or_to_the_web(folder, name):
    text = (folder / notebooks.WITHOUT / name).read_text("utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        assert link.startswith("https://") or (folder / notebooks.WITHOUT / link).exists(), link
