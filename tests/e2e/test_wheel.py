"""An installed wheel runs the quickstart in an empty folder, where there is no checkout to find
files in; and `scripts/install` shows errors of pip, not its warnings."""

import os
import shutil
import subprocess
import sys
import sysconfig

import pytest

from tests import ROOT
from tests.processes import output_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(module_path):
    """A virtual environment with the wheel alone; the dependencies are this environment's, through
    a .pth file."""
    checkout = module_path / "checkout"
    for name in "seq2seq_attn configs data tests pyproject.toml README.md LICENSE".split():
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__", "multi30k", "prepared", "captions-*")
            shutil.copytree(source, checkout / name, ignore=ignore)
        else:
            shutil.copy(source, checkout / name)
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", module_path / "dist", checkout]
    output_of(build)
    shutil.rmtree(checkout)
    subprocess.run([sys.executable, "-m", "venv", str(module_path / "venv")], check=True)
    python = module_path / "venv" / "bin" / "python"
    [wheel] = (module_path / "dist").glob("*.whl")
    install = [python, *"-m pip install --quiet --no-deps --no-index".split(), wheel]
    subprocess.run(install, check=True, env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    [site] = (module_path / "venv" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return module_path / "venv" / "bin" / "seq2seq"


def test_quickstart_in_an_empty_folder(installed, tmp_path):
    settings = ["--set=data.limit={train: 60, valid: 5, test: 5}", "--set=train.max_updates=2"]
    run = [installed, "train", "-c", "quickstart", *settings, "--run-dir", "run"]
    output_of(run, cwd=tmp_path)
    assert (tmp_path / "run" / "model.safetensors").exists()
    script = "import seq2seq_attn; print(seq2seq_attn.__file__)"
    where = [installed.with_name("python"), "-c", script]
    assert str(ROOT) not in subprocess.check_output(where, cwd=tmp_path, text=True), "not the wheel"
    translate = [installed, "translate", "--run", "run", "Der Hund schläft."]
    assert subprocess.check_output(translate, cwd=tmp_path, text=True).count("\n") == 1


def test_the_package_is_typed(installed):
    site = next((installed.parents[1] / "lib").glob("python*/site-packages"))
    assert (site / "seq2seq_attn" / "py.typed").is_file()


def test_errors_are_shown_and_warnings_of_missing_wheel_folders_are_not(tmp_path):
    for folder in ("scripts", "bin"):
        (tmp_path / folder).mkdir()
    for command in ("bash", "cat", "cksum", "dirname"):  # macOS may have only the POSIX commands
        (tmp_path / "bin" / command).symlink_to(str(shutil.which(command)))
    for name in ("scripts/install", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    offline = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "nowhere"),
        "PYTHON": sys.executable,
    }
    offline["PATH"] = str(tmp_path / "bin")
    done = subprocess.run(
        [tmp_path / "scripts" / "install"], env=os.environ | offline, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "ERROR: Cannot install torch" in done.stderr or "ERROR: No matching" in done.stderr
    assert "WARNING" not in done.stderr
