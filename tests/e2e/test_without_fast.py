"""The package without `model/fast`: slower, and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
PATHS = ["tests/search", "tests/contract", "tests/model", "tests/golden", "tests/translate"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The checkout without the folder and its own tests."""
    to = tmp_path_factory.mktemp("plain")
    for name in (
        "seq2seq_attn",
        "tests",
        "scripts",
        "configs",
        "data",
        "examples",
        "pyproject.toml",
    ):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source,
                to / name,
                ignore=shutil.ignore_patterns("__pycache__", "prepared", "multi30k"),
            )
        else:
            shutil.copy(source, to / name)
    shutil.rmtree(to / "seq2seq_attn" / "model" / "fast")
    shutil.rmtree(to / "tests" / "model" / "fast")
    return to


def test_all_that_models_do_works_without_it(copy):
    # products in int8 are a quick version alone
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-k",
        "not int8",
    ]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [*command, *PATHS], cwd=copy, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:]
