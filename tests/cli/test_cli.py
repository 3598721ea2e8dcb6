"""The command line as others script it: options, exit codes, one-line errors, what goes to
stdout."""

import errno
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from typer.main import get_command

from seq2seq_attn import __version__
from seq2seq_attn.__main__ import run
from seq2seq_attn.cli import COMMANDS, GROUPS, app
from seq2seq_attn.config import load_config
from seq2seq_attn.model.weights import read_tensors
from seq2seq_attn.run import Run
from tests.cli.command_line import assert_fails, outputs, set_options
from tests.train.conftest import toy_settings
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("in_tmp_path")


def settings(corpus, *more):
    return ["-c", "base", *set_options([*toy_settings(corpus), *more])]


@pytest.mark.parametrize("arguments", [["--help"], []])
def test_help_names_the_commands(capsys, arguments):
    assert outputs(capsys, "--version") == [f"seq2seq {__version__}"]
    lines = outputs(capsys, *arguments)
    for command in COMMANDS:
        assert any(line.startswith(f"  {command} ") for line in lines)


GONE = ["data.corpus=files", "data.train=gone", "model.attention.name=aditive"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "'train'"),
        (["train", "--seed"], "'--seed'"),
        (["translate", "-o"], "'seq2seq translate --help'"),
        (["export"], "'--output'"),
        (["train", "--sed", "3"], "--seed"),
        (["train", "--seed", "-3"], "--seed -3"),
        # before the data, which is not there, is looked for
        (["train", *set_options(GONE)], "additive"),
        (["train", "--resume"], "runs/"),
        (["translate", "Hund", "--und dann?"], "write --"),
        (["translate", "--prefix", "- No", "--n-best", "-- x"], "--n-best -- x"),
        (["prepare", "wmt14"], "corpus 'wmt14'"),
        ("prepare captions -c quickstart".split(), "'captions'"),
    ],
)
def test_usage_errors_exit_with_2(capsys, arguments, message):
    assert_fails(capsys, *arguments, code=2, message=message)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("two\nlines"), "ValueError"),
        (FileNotFoundError(errno.ENOENT, "No such file", "no/such"), "no/such"),
        (MemoryError("17 bytes"), "--batch-size"),
        (RuntimeError("enforce fail: can't allocate memory: 17 bytes"), "--batch-size"),
        (FileNotFoundError(errno.ENOENT, "No such file"), "current folder"),
    ],
)
def test_an_unforeseen_error_is_one_line(capsys, monkeypatch, error, message):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("seq2seq_attn.api.train.load_config", fail)
    assert_fails(capsys, "prepare", code=1, message=message)


def test_dump_config_prints_all_settings_and_nothing_else(capsys):
    arguments = "-c tutorial -c attention/fixed --seed 7 --device cpu".split()
    arguments += ["--set", "search.beam_size=3"]
    assert run(["train", *arguments, "--dump-config"]) == 0
    out, err = capsys.readouterr()
    settings = {"seed": 7, "train.device": "cpu", "search.beam_size": 3}
    expected = load_config(["tutorial", "attention/fixed"], settings)
    assert yaml.safe_load(out) == expected.model_dump(mode="json")
    assert err == ""
    assert not Path("runs").exists()


def test_the_whole_way(capsys, toy_corpus):
    [path] = outputs(capsys, "train", *settings(toy_corpus, "train.max_updates=4"))
    assert path.startswith("runs/")
    assert path.endswith("-toy-s1")
    assert Run(path).is_finished()
    lines = outputs(capsys, "translate", "Hund", "", "Katze")
    assert (len(lines), lines[1]) == (3, "")
    Path("in.txt").write_text("Hund\n\nKatze Mann\n")
    files = "-i in.txt -o out.txt --beam-size 2".split()
    assert outputs(capsys, "translate", "--run", path, *files) == []
    assert Path("out.txt").read_text().count("\n") == 3
    assert run(["train", "--resume", "--run-dir", path]) == 0
    assert "finished" in capsys.readouterr().err
    assert_fails(capsys, "train", *settings(toy_corpus), "--run-dir", path, code=2, message=path)


def test_ctrl_c_saves_and_exits_with_130(toy_corpus):
    endless = settings(
        toy_corpus, "train.max_epochs=100000", "train.validation.every_updates=100000"
    )
    command = [sys.executable, "-m", "seq2seq_attn", "train", *endless, "--run-dir", "run"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    metrics = Path("run/metrics.jsonl")
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            wait_for(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") >= 3)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, err
    assert out == ""
    assert "--resume --run-dir run" in err
    assert "Traceback" not in err
    assert read_tensors(Run("run").state_path).values["state"]["update"] >= 9


@pytest.mark.usefixtures("heard_signals")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signals_outside_training_exit_with_their_code(monkeypatch, number, code):
    def interrupt(*args, **kwargs):
        os.kill(os.getpid(), number)
        time.sleep(5)

    monkeypatch.setattr("seq2seq_attn.api.train.prepare_corpus", interrupt)
    assert run(["prepare"]) == code


ENDING = """
import atexit, sys, threading, time
from seq2seq_attn.__main__ import main
atexit.register(print, "at exit", file=sys.stderr)
threading.Thread(target=lambda: (time.sleep(0.2), print("thread", file=sys.stderr))).start()
main()
"""


@pytest.mark.parametrize(
    ("arguments", "stdout", "code", "error"),
    [
        ("evaluate --help", "| cat >out", 0, ""),
        ("evaluate --help", ">out", 0, ""),
        ("evaluate --help", "| true", 0, ""),
        ("evaluate --help", ">&-", 0, ""),
        ("--version", ">/dev/full", 1, "error: standard output: "),
        ("trian", ">out", 2, "error: "),
    ],
)
def test_the_end_of_the_process(arguments, stdout, code, error):
    """Threads and exit handlers finish, and all output is written, although the interpreter is not
    torn down."""
    command = f"{sys.executable} -c '{ENDING}' {arguments} {stdout}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == code
    *lines, last = done.stderr.splitlines()
    assert last == "at exit"
    lines.remove("thread")
    assert [line[: len(error)] for line in lines] == ([error] if error else [])
    if "out" in stdout and code == 0:
        assert "--help" in Path("out").read_text().splitlines()[-1]


class Gone(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_a_training_goes_on_when_nobody_reads_its_log(toy_corpus, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", Gone())
    assert run(["train", *settings(toy_corpus, "train.max_updates=4"), "--run-dir", "run"]) == 0
    assert capsys.readouterr().out == "run\n"
    assert Run("run").is_finished()
    assert run(["train", "--run-dir", "run"]) == 2  # cannot be said, but the exit code tells


def test_stderr_may_be_closed(toy_corpus, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert run(["prepare", *settings(toy_corpus)]) == 0
    assert sys.stderr is not None
    sys.stderr.close()


def test_only_the_reader_of_stdout_ends_a_command_well(capfd, monkeypatch):
    def fail(*args, **kwargs):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    monkeypatch.setattr("seq2seq_attn.api.train.prepare_corpus", fail)
    assert run(["prepare", "captions"]) == 1
    assert capfd.readouterr().err == "error: [Errno 32] Broken pipe\n"
    monkeypatch.setattr(sys, "stdout", None)  # closed by the caller, so nobody read it
    assert run(["prepare", "captions"]) == 1
    assert capfd.readouterr().err == "error: [Errno 32] Broken pipe\n"


INTERRUPTED = """
import atexit, os, signal
import seq2seq_attn.__main__ as main
signal.signal(signal.SIGINT, signal.default_int_handler)
main.run = lambda arguments: 130
atexit.register(os.kill, os.getpid(), signal.SIGINT)
main.main()
"""


def test_ctrl_c_while_the_process_ends_is_quiet():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.returncode == -signal.SIGINT
    assert done.stderr == ""


def test_ctrl_c_while_the_command_line_is_imported_is_quiet(monkeypatch, capsys):
    class Interrupted(ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "seq2seq_attn.cli", Interrupted("cli"))
    assert run(["--help"]) == 130
    assert capsys.readouterr() == ("", "")
    # the parser is imported when `run` already watches for signals
    code = "import sys, seq2seq_attn.__main__; sys.exit('typer' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.fixture(params=["", *COMMANDS])
def shown(request, monkeypatch, capsys):
    """The help of the program and of each command, on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*request.param.split(), "--help"]) == 0
    return capsys.readouterr().out


def test_it_fits_the_terminal_cuts_nothing_and_shows_no_types(shown):
    assert max(map(len, shown.splitlines())) <= 80
    assert not re.search(r"\w\.\.\.$", shown, re.MULTILINE)
    assert not re.search(r"<(list|str|int|float|Path|bool)\b|\[default:\s+\(", shown)


def test_every_option_has_a_group():
    """`texts`, `runs`, `pairs`, `corpus` and `repository` are arguments."""
    names = {"help", "texts", "runs", "pairs", "corpus", "repository"}
    for command in get_command(app).commands.values():
        names |= {parameter.name for parameter in command.params}
    grouped = " ".join(GROUPS.values()).split()
    assert len(grouped) == len({*grouped})
    assert {*grouped} == names - {"texts", "runs", "pairs", "corpus", "repository"}


@pytest.mark.parametrize(
    ("usage", "setting"),
    [("translate Hund", "output=out.txt"), ("evaluate", "report=out.html")],
)
def test_set_refuses_options_of_the_command(capsys, usage, setting):
    name = setting.partition("=")[0]
    assert_fails(capsys, *usage.split(), "--set", setting, code=2, message=f"--set {name}")
