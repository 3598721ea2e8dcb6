from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def multi30k_dir() -> Path:
    """The folder with the published Multi30k files."""
    named = os.environ.get("SEQ2SEQ_MULTI30K_DIR")
    if not named or not Path(named).is_dir():
        pytest.skip("SEQ2SEQ_MULTI30K_DIR names no folder with the Multi30k files")
    return Path(named)
