"""The site: docs/ by Sphinx, with the chapters of the course as they were executed last."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jupytext
from nbclient import NotebookClient

from scripts.laboratory.harness.records import ROOT

SITE = ROOT / "build" / "site"
EXECUTED = ROOT / "build" / "learn"


def build(site: Path = SITE) -> int:
    """Build the site; warnings are errors. The exit code."""
    options = "-W --keep-going -q -E -c docs".split()
    command = [sys.executable, "-m", "sphinx", *options, "-d", f"{site}.doctrees"]
    return subprocess.run([*command, ".", site], cwd=ROOT).returncode


def chapters() -> list[Path]:
    return sorted((ROOT / "docs" / "learn").glob("[0-9]*.py"))


def execute() -> int:
    """Execute the chapters whose code has changed; the first error ends it."""
    for chapter in chapters():
        text = chapter.read_text(encoding="utf-8")
        if not executed(text).exists():
            notebook = jupytext.reads(text, fmt="py:percent")
            NotebookClient(
                notebook, timeout=600, resources={"metadata": {"path": chapter.parent}}
            ).execute()
            EXECUTED.mkdir(parents=True, exist_ok=True)
            jupytext.write(notebook, executed(text))
            print(f"{chapter.name}: executed", flush=True)
    return 0


def executed(text: str) -> Path:
    """The file of a chapter with its outputs, named by its code, so that changes of its prose keep
    them."""
    is_code = re.compile(r"[^#]|# %%(?! \[markdown\])").match
    code = "\n".join(line for line in text.splitlines() if is_code(line))
    return EXECUTED / f"{hashlib.sha256(code.encode()).hexdigest()}.ipynb"


def read_notebook(text: str) -> Any:
    """A chapter for Sphinx, with the outputs of its last execution if its code is still the
    same."""
    notebook = jupytext.reads(text, fmt="py:percent")
    if executed(text).exists():
        done = jupytext.read(executed(text))
        for cell, done_cell in zip(_code_cells(notebook), _code_cells(done), strict=True):
            cell.outputs = done_cell.outputs
    return notebook


def _code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]
