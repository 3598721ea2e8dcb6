"""The chapters of the course as Jupyter notebooks: with answers, for teachers, and without."""

import re
import shutil
from pathlib import Path

import jupytext

from scripts.laboratory.harness.records import ROOT
from scripts.laboratory.pages.site import chapters, read_notebook

FOLDER = ROOT / "build" / "notebooks"
WITH, WITHOUT = "with-answers", "without-answers"


def write(folder: Path = FOLDER) -> int:
    """Write a folder with the answers and the outputs of the last execution, and a folder with
    neither. Both hold `course.py`, which the chapters import. The exit code."""
    for name in (WITH, WITHOUT):
        (folder / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "docs" / "learn" / "course.py", folder / name)
    for chapter in chapters():
        notebook = read_notebook(link_notebooks(chapter.read_text(encoding="utf-8")))
        jupytext.write(notebook, folder / WITH / f"{chapter.stem}.ipynb")
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs = []
            if "hide-cell" in cell.metadata.get("tags", ()):
                cell.metadata.clear()
                cell.source = "# your answer"
        jupytext.write(notebook, folder / WITHOUT / f"{chapter.stem}.ipynb")
    return 0


def link_notebooks(text: str) -> str:
    """A chapter whose links lead to notebooks. Links to other documents become their texts."""
    text = re.sub(r"\]\((\d[\w-]+)\.py\)", r"](\1.ipynb)", text)
    return re.sub(r"\[([^]]+)\]\(\.\.?/\S+\)", r"\1", text)
