"""One thread a process: small tensors gain nothing from more, and test processes share the cores.
And Ctrl-C is heard: what a shell starts in the background ignores SIGINT, and so would the
processes that tests start."""

import gc
import os
import signal
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def multi30k_dir():
    """The folder with the published Multi30k files."""
    named = os.environ.get("SEQ2SEQ_MULTI30K_DIR")
    if not named or not Path(named).is_dir():
        pytest.skip("SEQ2SEQ_MULTI30K_DIR names no folder with the Multi30k files")
    return Path(named)


@pytest.fixture(autouse=True)
def _collected():
    """Commands exempt what they load from garbage collection; here many commands share a
    process."""
    yield
    gc.unfreeze()


@pytest.fixture
def in_tmp_path(tmp_path, monkeypatch):
    """The current folder is an empty one."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def heard_signals():
    """SIGHUP ends processes by default, also under `nohup`, which ignores it."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, former)


@pytest.fixture(scope="module")
def module_path(tmp_path_factory):
    """A folder for all tests of a file."""
    return tmp_path_factory.mktemp("module")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium."""
    from tests.report.browsing import start_browser  # selenium may be missing

    found = start_browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.quit()


@pytest.fixture(scope="session")
def toy_corpus(tmp_path_factory):
    """A folder with train, valid and test files, de and en; what is prepared from them lands there
    too."""
    from tests.train.conftest import write_toy_corpus

    directory = tmp_path_factory.mktemp("toy")
    write_toy_corpus(directory)
    return directory


@pytest.fixture
def figures(monkeypatch):
    """The matplotlib figures that were saved, to look into."""
    from matplotlib.figure import Figure

    saved = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure,
        "savefig",
        lambda figure, *to, **how: saved.append(figure) or save(figure, *to, **how),
    )
    return saved
