"""A variant of an installed package (`examples/plugin`) is used, resumed, exported and served
without `--import`."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import read_json
from seq2seq_attn.model.variants import find_build
from seq2seq_attn.serve.worker import load_runs
from tests import ROOT
from tests.cli.command_line import assert_fails, outputs
from tests.cli.test_import import SHORT
from tests.train.conftest import write_toy_corpus

PLUGIN = ROOT / "examples" / "plugin"
MODULE = "seq2seq_kernel"
CHOSEN = f"--set=model.attention.name={MODULE}"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs the package, without pip, in a folder on `sys.path`; the current folder is
    another."""
    site = tmp_path / "site"
    metadata = site / "seq2seq_kernel-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: seq2seq-kernel\nVersion: 1.0")
    (metadata / "entry_points.txt").write_text(f"[seq2seq_attn.variants]\nkernel = {MODULE}\n")
    shutil.copy(PLUGIN / f"{MODULE}.py", site)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    monkeypatch.syspath_prepend(site)
    yield site
    sys.modules.pop(MODULE, None)


def test_an_installed_variant_trains_is_resumed_exported_and_served(installed, monkeypatch, capsys):
    write_toy_corpus(Path("toy"))
    assert run(["train", "--run-dir", "mine", *SHORT, CHOSEN]) == 0
    assert run("train --run-dir mine --resume --set train.max_updates=4".split()) == 0
    assert read_json(Path("mine/environment.json"))["packages"]["seq2seq-kernel"]
    assert len(outputs(capsys, "translate", "--run", "mine", "Hund Katze")) == 1
    assert run("export mine -o page.html".split()) == 0
    assert load_runs({("de", "en"): Path("mine")}, [], {"device": "cpu"})

    shutil.rmtree(installed)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    message = f"error: mine: model.attention.name={MODULE!r}: "
    assert_fails(capsys, "translate", "--run", "mine", "Hund", code=2, message=message)


@pytest.mark.usefixtures("installed")
def test_installed_modules_are_listed_with_the_variants():
    with pytest.raises(UsageError, match=f"uniform, {MODULE} "):
        find_build("attention", "nowhere")
    assert MODULE not in sys.modules


def test_an_installed_module_that_cannot_be_imported(installed):
    (installed / f"{MODULE}.py").write_text("1 / 0\n", "utf-8")
    with pytest.raises(UserError, match=rf"{MODULE}: .*{MODULE}\.py:1: ZeroDivisionError"):
        find_build("attention", MODULE)


@pytest.mark.slow
def test_pip_installs_the_package_and_its_tests_pass(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    [site] = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    root = PLUGIN.parents[1]
    (site / "outside.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{root}\n")
    shutil.copytree(PLUGIN, tmp_path / "plugin")
    install = "-m pip install --quiet --no-deps ./plugin".split()
    subprocess.run([python, *install], cwd=tmp_path, check=True)
    shutil.copy(PLUGIN / "test_seq2seq_kernel.py", tmp_path)
    subprocess.run([python, "-m", "pytest", "test_seq2seq_kernel.py"], cwd=tmp_path, check=True)
