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
    ignore = shutil.ignore_patterns("__pycache__", "prepared", "multi30k")
    for name in "seq2seq_attn tests scripts configs data examples".split():
        shutil.copytree(ROOT / name, to / name, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", to)
    shutil.rmtree(to / "seq2seq_attn" / "model" / "fast")
    shutil.rmtree(to / "tests" / "model" / "fast")
    return to


def test_all_that_models_do_works_without_it(copy):
    # products in int8 are a quick version alone
    options = ["-q", "-x", "-pno:cacheprovider", "-pno:xdist", "-k", "not int8"]
    command = [sys.executable, "-m", "pytest", *options, *PATHS]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
