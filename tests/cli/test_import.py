"""`--import`: the documented example of a variant from outside the package, from training to scores."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
from tests.train.conftest import toy_settings, write_toy_corpus

EXAMPLE = Path(__file__).parents[2] / "examples" / "cosine.py"


@pytest.fixture
def forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty current folder with the example in it; whatever a test imports is unknown to the next one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    shutil.copy(EXAMPLE, tmp_path)
    yield
    sys.modules.pop("cosine", None)


@pytest.mark.usefixtures("forget")
def test_the_example_trains_translates_and_is_evaluated(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_toy_corpus(Path("toy"))
    settings = [*toy_settings(Path("toy")), "train.max_epochs=1", "model.attention.name=cosine"]
    settings = [word for one in settings for word in ("--set", one)]
    train = ["train", "-c", "base", "--run-dir", "mine", *settings]
    assert run(train) == 2
    assert capsys.readouterr().err.endswith("(a variant of your own module needs --import cosine)\n")
    assert run([*train, "--import", "cosine"]) == 0
    assert run(["translate", "--run", "mine", "--import", "cosine", "Hund Katze"]) == 0
    assert run(["evaluate", "mine", "--import", "cosine"]) == 0
    assert "BLEU" in capsys.readouterr().out

    monkeypatch.setattr("seq2seq_attn.model.variants._imported", {})
    del sys.modules["cosine"]
    for command in (["translate", "--run", "mine", "Hund"], ["evaluate", "mine"]):
        assert run(command) == 2
        message = capsys.readouterr().err.splitlines()[-1]
        assert message.startswith("error: mine: model.attention.name='cosine': ")
        assert message.endswith("--import cosine)")
    assert "cosine" not in sys.modules


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize("command", ["prepare", "train", "evaluate", "translate"])
def test_a_module_that_is_not_there(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert run([command, "--import", "nowhere"]) == 2
    assert "error: --import nowhere: no such module" in capsys.readouterr().err


@pytest.mark.usefixtures("forget")
def test_an_exception_inside_a_module_is_shown_with_its_file_and_line(capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("cosine.py").read_text(encoding="utf-8")
    Path("cosine.py").write_text(text.replace("sharpness * torch.bmm(", "sharpness * torch.bmm(1 / 0, "), "utf-8")
    line = text[: text.index("sharpness * torch.bmm(")].count("\n") + 1
    train = ["train", "-c", "quickstart", "--import", "cosine", "--set", "model.attention.name=cosine"]
    assert run(train) == 1
    [message] = capsys.readouterr().err.splitlines()
    assert f"cosine.py:{line}: ZeroDivisionError: division by zero" in message
    assert run([*train, "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
