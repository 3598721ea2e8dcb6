"""SIGKILL at random moments: the script that makes the record, with fewer kills."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "kill_resume"


@pytest.mark.slow
def test_a_training_killed_and_resumed_ends_like_an_uninterrupted_one(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    command = [SCRIPT, "--kills", "3", "--seed", "2", "--record", str(record)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(record.read_text(encoding="utf-8"))
    assert found["identical"] is True
    assert len(found["kills"]) == 3
