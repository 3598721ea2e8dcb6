"""The package without `model/fast`: slower, and nothing else."""

import os
import shutil
import sys

import pytest

from tests import ROOT
from tests.processes import output_of

pytestmark = pytest.mark.slow
PATHS = ["tests/search", "tests/contract", "tests/model", "tests/golden", "tests/translate"]


@pytest.fixture(scope="module")
def copy(module_path):
    """The checkout without the folder and its own tests."""
    ignore = shutil.ignore_patterns("__pycache__", "prepared", "multi30k")
    for name in "seq2seq_attn tests scripts configs data examples".split():
        shutil.copytree(ROOT / name, module_path / name, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", module_path)
    shutil.rmtree(module_path / "seq2seq_attn" / "model" / "fast")
    shutil.rmtree(module_path / "tests" / "model" / "fast")
    return module_path


def test_all_that_models_do_works_without_it(copy):
    # products in int8 are a quick version alone
    options = [*"-q -x -pno:cacheprovider -pno:xdist -k".split(), "not int8"]
    command = [sys.executable, "-m", "pytest", *options, *PATHS]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    output_of(command, cwd=copy, env=environment)
