"""Every message that docs/trouble.md explains is provoked by a command."""

import math
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from seq2seq_attn.__main__ import run
from seq2seq_attn.text import multi30k
from seq2seq_attn.train import update
from seq2seq_attn.train.loss import batch_loss
from seq2seq_attn.train.session import locked
from tests import ROOT
from tests.cli.command_line import set_options
from tests.toy_run import make_toy_run, toy_config
from tests.train.conftest import toy_settings, write_toy_corpus

PAGE = (ROOT / "docs" / "trouble.md").read_text("utf-8")
QUOTED = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
SETTINGS = [*toy_settings(Path("toy")), "train.max_updates=2", "train.max_bad_updates=2"]
TOY = shlex.join(["train", "-c", "base", *set_options(SETTINGS)])
VALIDATED = f"{TOY} --set train.max_updates=6 --set train.validation.every_updates=6"
COMMANDS = {
    "no finished run; train one with": "translate Hund",
    "no packaged config of that name": "train -c quikstart",
    "unknown configuration key": "train -c quickstart --set model.hiden_size=3",
    ": no such variant; ": "train -c quickstart --set model.attention.name=additiv",
    ": not installed; run: pip install": "export words -o words.onnx",
    "begins with -, as options do": "translate '-Hund rennt'",
    "cannot be downloaded (": "prepare multi30k",
    "no such text file; expected": "train --train nowhere/train",
    "name the columns": "train --train numbers.tsv --source-language de --target-language en",
    ", but its text is not; the first row is ": (
        "train --train numbers.tsv --columns 1,2 --source-language ru --target-language en"
    ),
    ": damaged, as are ": "score --run words damaged.tsv --columns 1,2",
    "no pair is left: ": f"{TOY} --run-dir none --set data.max_length=1",
    "usable CUDA GPUs; use auto or cpu": "translate --run words --device cuda:99 Hund",
    "already holds a run; --resume continues it": f"{TOY} --run-dir trained",
    "out of memory with ": f"{TOY} --run-dir large",
    "updates in a row: loss, gradient or weights not finite": f"{TOY} --run-dir infinite",
    "is worse than guessing among": (
        f"{VALIDATED} --run-dir guessing --set train.optimizer.learning_rate=30"
    ),
    "are in the training text too: their scores say little": (
        f"{TOY} --run-dir same --set data.test.test=toy/train"
    ),
    "have four words separated by spaces": (
        f"{TOY} --run-dir few --set data.valid=short/valid --set train.validation.metric=bleu"
    ),
    "in use by another": f"{TOY} --run-dir locked",
    "which a resume cannot change": "train --resume --run-dir trained --set model.hidden_size=3",
    "unknown to this run, on ": "translate --run words Xylophon",
    "cut at the length limit": "translate --run words --beam-size 1 'Zwei Kinder rennen.'",
    "are not UTF-8 text, and were translated": "translate --run words -i latin.txt",
    "has no attention over source positions": "translate --run fixed --alignment links.txt Hund",
    "damaged: not the content that": "translate --run damaged Hund",
}


@pytest.fixture(scope="module")
def folder(module_path):
    """A folder with a toy corpus and with runs."""
    write_toy_corpus(module_path / "toy")
    (module_path / "short").mkdir()
    for language in ("de", "en"):
        (module_path / "short" / f"valid.{language}").write_text("Hund\n" * 24)
    (module_path / "numbers.tsv").write_text("Hund\tdog\t1\n" * 9)
    (module_path / "damaged.tsv").write_text("Hund\tdog\nMann\n" * 9)
    (module_path / "latin.txt").write_bytes("Der Hund läuft.\n".encode("latin-1"))
    make_toy_run(module_path / "words", toy_config(tokenizer="spacy"))
    make_toy_run(module_path / "fixed", toy_config(attention="fixed"))
    shutil.copytree(module_path / "words", module_path / "damaged")
    with (module_path / "damaged" / "config.yaml").open("a") as file:
        file.write("\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(module_path)
        assert run([*shlex.split(TOY), "--run-dir", "trained"]) == 0
    return module_path


@pytest.fixture
def cause(request, monkeypatch):
    """Makes happen what no command does: a package is missing, the network is dead, memory lacks, a
    loss is infinite, another process trains."""

    def run_out_of_memory(*_, **__):
        raise MemoryError

    def overflow(*arguments, **options):
        loss = batch_loss(*arguments, **options)
        return loss._replace(loss_sum=loss.loss_sum * math.inf)

    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delenv("SEQ2SEQ_MULTI30K_DIR", raising=False)
    monkeypatch.setattr(multi30k, "BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(multi30k, "_WAITS_S", ())
    if request.param.startswith("out of memory"):
        monkeypatch.setattr(update, "batch_loss", run_out_of_memory)
    if request.param.startswith("updates in a row"):
        monkeypatch.setattr(update, "batch_loss", overflow)
    with locked(request.getfixturevalue("folder") / "locked"):
        yield request.param


@pytest.mark.parametrize("cause", QUOTED, indirect=True)
def test_a_quoted_message_is_shown(folder, monkeypatch, capsys, cause):
    monkeypatch.chdir(folder)
    run(shlex.split(COMMANDS[cause]))
    assert cause in capsys.readouterr().err


def test_the_page_has_twenty_messages():
    assert len({*QUOTED}) >= 20
