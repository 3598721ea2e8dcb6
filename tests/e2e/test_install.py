"""`scripts/install` shows errors of pip, not its warnings."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


def test_errors_are_shown_and_warnings_of_missing_wheel_folders_are_not(tmp_path):
    (tmp_path / "scripts").mkdir()
    for name in ("scripts/install", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "nowhere"), "PYTHON": sys.executable}
    done = subprocess.run([tmp_path / "scripts" / "install"], env=os.environ | offline, capture_output=True, text=True)
    assert done.returncode != 0
    assert "ERROR: Cannot install torch" in done.stderr or "ERROR: No matching" in done.stderr
    assert "WARNING" not in done.stderr
