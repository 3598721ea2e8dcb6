"""The command line as others script it: options, exit codes, one-line errors, what goes to stdout."""

from __future__ import annotations

import errno
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

from seq2seq_attn import __version__
from seq2seq_attn.__main__ import run
from seq2seq_attn.commands.cli.options import Metric
from seq2seq_attn.commands.evaluate import EvaluationRequest
from seq2seq_attn.commands.translate import TranslationRequest
from seq2seq_attn.config import load_config
from seq2seq_attn.evaluation.runs import Decoding
from seq2seq_attn.metrics.bleu import TITLES
from seq2seq_attn.report.build import Settings
from seq2seq_attn.report.files import ReportFiles
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.train import checkpoint
from tests.train.conftest import toy_settings, write_toy_corpus


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("toy")
    write_toy_corpus(directory)
    return directory


def settings(corpus: Path, *more: str) -> list[str]:
    return ["-c", "base"] + [argument for setting in (*toy_settings(corpus), *more) for argument in ("--set", setting)]


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code and the error, after checking that it is one line and that stdout is empty."""
    code = run(arguments)
    out, err = capsys.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:]
    assert "Traceback" not in err
    return code, lines[-1]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"seq2seq {__version__}\n"


def test_help_names_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Exit codes: 0: success. 2: a mistake in the command line or the configuration. 1: something else" in out


@pytest.mark.parametrize("arguments", [["--help"], []])
def test_help_names_the_commands(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in ("prepare", "train", "evaluate", "translate", "score", "compare"))


OPTIONS = {
    "prepare": "--train --valid --test --source-language --target-language"
    " -c --config --set --data-dir --source-dir --debug",
    "train": "--train --valid --test --source-language --target-language"
    " -c --config --set --run-dir --resume --overwrite --device --precision --seed --dump-config --debug",
    "evaluate": "--split --source --reference --concatenate --metric --by-length --length-of --merge-below --beam-size"
    " --length-penalty --batch-size --reuse-hypotheses --ensemble --no-attention --json --report --device --debug",
    "translate": "--run -i --input -o --output --beam-size --n-best --length-penalty --unk --alignment --attention"
    " --coverage-penalty --no-repeat-ngram --prefix --method --num-samples --temperature --top-k --top-p --seed"
    " --batch-size --device --debug",
    "score": "--source --target --run --links --alignment --attention --format --batch-size --device --import --debug",
    "compare": "-c --config --vary --seeds --set --output --at-once --device --precision --import --debug",
}


@pytest.mark.parametrize("command", OPTIONS)
def test_help_of_a_command_lists_its_options(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert run([command, "--help"]) == 0
    words = capsys.readouterr().out.replace(",", " ").split()
    assert [option for option in OPTIONS[command].split() if option not in words] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "No such command 'trian'. Did you mean 'train'? See 'seq2seq --help'."),
        (["train", "--seed"], "Option '--seed' requires an argument. See 'seq2seq train --help'."),
        (["translate", "--beam-size=99999999999999999999", "Hund"], "expected at most 1,000"),
        (["translate", "--length-penalty", "nan", "Hund"], "error: --length-penalty nan: expected"),
        (["train", "--sed", "3"], "No such option: --sed; did you mean --seed or --set? See"),
        (["train", "--seed", "-3"], "error: --seed -3: expected at least 0. See 'seq2seq train --help'"),
        (
            ["translate", "--beam-size", "0", "Hund"],
            "error: --beam-size 0: expected at least 1. See",
        ),
        (["translate", "--length-penalty=abc", "Hund"], "error: --length-penalty abc: expected a number"),
        (["translate", "--unk", "drop", "Hund"], "error: --unk drop: expected one of 'keep', 'copy', 'forbid'. See"),
        (["evaluate", "--length-of", "both"], "--length-of both: expected one of 'source', 'reference'"),
        (["evaluate", "--metric", "rouge"], "--metric rouge: expected one of 'bleu'"),
        (["evaluate", "--concatenate", "0"], "error: --concatenate 0: expected at least 1"),
        (["evaluate", "--concatenate", "1", "--concatenate", "0"], "error: --concatenate 0: expected at least 1"),
        (["train", "-c", "multi30"], "did you mean 'multi30k'"),
        (["train", "--set", "model.hiden_size=3"], "did you mean 'model.hidden_size'"),
        (["train", "--precision", "fp8"], "train.precision='fp8'"),
        # before the data, which is not there, is looked for
        (
            [
                "train",
                *(f"--set={s}" for s in ("data.corpus=files", "data.train=gone", "model.attention.name=aditive")),
            ],
            "model.attention.name='aditive': no such variant; did you mean 'additive'?",
        ),
        (["train", "--resume"], "no unfinished run in runs/"),
        (["prepare", "wmt14"], "corpus 'wmt14': expected multi30k, captions"),
        (["prepare", "captions", "-c", "quickstart"], "'captions' and --config"),
        (["train", "-c", "base", "--resume", "--overwrite", "--run-dir", "x"], "--resume and --overwrite"),
    ],
)
def test_usage_errors_exit_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    code, error = fails(capsys, *arguments)
    assert code == 2
    assert message in error


def test_run_time_failures_exit_with_1(capsys: pytest.CaptureFixture[str], corpus: Path) -> None:
    code, error = fails(capsys, "translate", "Hund")
    assert (code, "no finished run" in error) == (1, True)
    lines = (corpus / "train.de").read_text().splitlines()
    (corpus / "short.de").write_text("\n".join(lines[:-1]) + "\n")
    (corpus / "short.en").write_bytes((corpus / "train.en").read_bytes())
    code, error = fails(capsys, "train", *settings(corpus, f"data.train={corpus / 'short'}"))
    assert code == 1
    assert "159" in error
    assert "160" in error


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["translate", "--debug", "Hund"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_unforeseen_error_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise ValueError("two\nlines")

    monkeypatch.setattr("seq2seq_attn.config.load_config", fail)
    code, error = fails(capsys, "prepare")
    assert (code, error) == (1, "error: ValueError: two lines (unexpected error; rerun with --debug for a traceback)")
    monkeypatch.setattr("seq2seq_attn.config.load_config", lambda *args: Path("no/such").read_text())
    assert fails(capsys, "prepare") == (1, "error: no/such: No such file or directory")


def test_dump_config_prints_all_settings_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "-c",
        "tutorial",
        "-c",
        "attention/none",
        "--seed",
        "7",
        "--device",
        "cpu",
        "--set",
        "search.beam_size=3",
    ]
    assert run(["train", *arguments, "--dump-config"]) == 0
    out, err = capsys.readouterr()
    expected = load_config(["tutorial", "attention/none"], ["seed=7", "train.device=cpu", "search.beam_size=3"])
    assert yaml.safe_load(out) == expected.model_dump(mode="json")
    assert err == ""
    assert not Path("runs").exists()


def test_train_without_options_is_multi30k(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "--dump-config"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["name"] == "multi30k"


def test_prepare_prints_an_audit_and_reuses(capsys: pytest.CaptureFixture[str], corpus: Path, tmp_path: Path) -> None:
    arguments = ["prepare", *settings(corpus), "--data-dir", str(tmp_path / "d a t a")]
    assert run(arguments) == 0
    first = capsys.readouterr()
    assert "train" in first.out
    assert "160" in first.out
    assert run(arguments) == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert "reused" in second.err


def test_the_whole_way(capsys: pytest.CaptureFixture[str], corpus: Path, tmp_path: Path) -> None:
    assert run(["train", *settings(corpus, "train.max_updates=4")]) == 0
    path = capsys.readouterr().out.strip()
    assert path.startswith("runs/")
    assert path.endswith("-toy-s1")
    assert RunDir(path).is_finished()
    assert run(["translate", "Hund", "", "Katze"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert (len(lines), lines[1]) == (4, "")
    Path("in.txt").write_text("Hund\n\nKatze Mann\n")
    assert run(["translate", "--run", path, "-i", "in.txt", "-o", "out.txt", "--beam-size", "2"]) == 0
    assert capsys.readouterr().out == ""
    assert Path("out.txt").read_text().count("\n") == 3
    assert run(["train", "--resume", "--run-dir", path]) == 0
    assert "finished" in capsys.readouterr().err
    code, error = fails(capsys, "train", *settings(corpus), "--run-dir", path)
    assert (code, "already holds a run" in error) == (2, True)


@pytest.mark.parametrize(
    ("of_method", "options"),
    [
        (
            "--beam-size 4 --coverage-penalty 0.2 --length-penalty 0.5",
            {"beam_size": 4, "coverage_penalty": 0.2, "length_penalty": 0.5, "method": "beam"},
        ),
        (
            "--method mbr --num-samples 8 --temperature 0.5 --top-k 9 --top-p 0.9 --seed 7",
            {"method": "mbr", "num_samples": 8, "temperature": 0.5, "top_k": 9, "top_p": 0.9, "seed": 7},
        ),
    ],
)
def test_translate_hands_every_option_on(
    monkeypatch: pytest.MonkeyPatch, of_method: str, options: dict[str, object]
) -> None:
    for name in ("r", "s"):
        RunDir.create(name).save_config(load_config())
    seen: list[TranslationRequest] = []
    monkeypatch.setattr("seq2seq_attn.commands.translate.translate", seen.append)
    arguments = "--run r --run s -i a -o b --n-best 2 --unk copy --alignment c --prefix A"
    arguments += " --attention d.npz --batch-size 9 --device cpu --precision int8 --max-length-ratio 3"
    arguments += f" --format json --no-repeat-ngram 3 {of_method}"
    assert run(["translate", *arguments.split()]) == 0
    options |= {"n_best": 2, "max_length_ratio": 3.0, "unk": "copy", "prefix": "A"}
    options |= {"no_repeat_ngram": 3}
    assert seen == [
        TranslationRequest(
            [],
            [Path("r"), Path("s")],
            inputs=["a"],
            output="b",
            format="json",
            search=SearchOptions.given(**options, batch_size=9),
            alignment=Path("c"),
            attention=Path("d.npz"),
            device="cpu",
            precision="int8",
        )
    ]


def test_evaluate_hands_every_option_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        RunDir.create(name).save_config(load_config())
    seen = []

    def evaluate(request: EvaluationRequest) -> SimpleNamespace:
        seen.append(request)
        return SimpleNamespace(text="the tables", summary="the table")

    monkeypatch.setattr("seq2seq_attn.commands.evaluate.evaluate", evaluate)
    arguments = "a b --split x --split y --by-length 9,12 --length-of reference --beam-size 4 --length-penalty 0.5"
    arguments += (
        " --concatenate 1 --concatenate 3 --metric ter --metric bleu --merge-below 50 --reuse-hypotheses --no-attention"
    )
    arguments += " --length-in characters --ensemble --batch-size 9 --json j --report r.html --plots svg --csv s.csv"
    arguments += " --latex t.tex --device cpu --precision bf16 --max-length-ratio 3"
    assert run(["evaluate", *arguments.split()]) == 0
    out, err = capsys.readouterr()
    assert out == "the table\n"
    assert "use --full for every measure" in err
    assert run(["evaluate", "a", "--full"]) == 0
    assert capsys.readouterr().out == "the tables\n"
    assert seen[:1] == [
        EvaluationRequest(
            [Path("a"), Path("b")],
            splits=["x", "y"],
            concatenate=[1, 3],
            settings=Settings("9,12", "reference", ("ter", "bleu"), merge_below=50, length_in="characters"),
            decoding=Decoding(
                SearchOptions(beam_size=4, length_penalty=0.5, max_length_ratio=3.0, batch_size=9),
                "cpu",
                "bf16",
                reuse_hypotheses=True,
            ),
            files=ReportFiles(Path("j"), Path("r.html"), "svg", Path("s.csv"), Path("t.tex")),
            ensemble=True,
            analyze_attention=False,
        )
    ]


def test_evaluate_knows_every_measure() -> None:
    assert [one.value for one in Metric] == list(TITLES)


@contextmanager
def endless_training(corpus: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    """A training in a process of its own that does not end by itself."""
    endless = settings(corpus, "train.max_epochs=100000", "train.validation.every_updates=100000")
    command = [sys.executable, "-m", "seq2seq_attn", "train", *endless, "--run-dir", "run", *more]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_lines(process: subprocess.Popen[str], num_lines: int) -> None:
    path, deadline = Path("run/metrics.jsonl"), time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < num_lines:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, f"{path} has not grown to {num_lines} lines"
        time.sleep(0.02)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_signals_save_and_exit_with_their_code(corpus: Path, number: int, code: int) -> None:
    with endless_training(corpus) as process:
        wait_for_lines(process, 3)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert out == ""
    assert "finishing this update, then saving" in err
    assert "saved; continue with --resume --run-dir run" in err
    assert "Traceback" not in err
    assert checkpoint.read_values(Path("run/last"))["state"]["update"] >= 9


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_signals_outside_training_exit_with_their_code(monkeypatch: pytest.MonkeyPatch, number: int, code: int) -> None:
    def interrupt(*args: object, **kwargs: object) -> None:
        os.kill(os.getpid(), number)
        time.sleep(5)

    monkeypatch.setattr("seq2seq_attn.data.prepare.prepare_corpus", interrupt)
    assert run(["prepare"]) == code


def test_closed_streams_are_one_line_too() -> None:
    for closing, what in ((">&-", "output"), ("<&-", "input")):
        command = f"{sys.executable} -m seq2seq_attn translate --run nowhere {closing}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 1, what
        assert done.stderr.startswith("error: "), what
        assert "unexpected error" not in done.stderr


def test_a_closed_pipe_is_quiet() -> None:
    command = f"{sys.executable} -m seq2seq_attn train --dump-config | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


class Gone(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def test_a_training_goes_on_when_nobody_reads_its_log(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", Gone())
    assert run(["train", *settings(corpus, "train.max_updates=4"), "--run-dir", "run"]) == 0
    assert capsys.readouterr().out == "run\n"
    assert RunDir("run").is_finished()
    assert run(["train", "--run-dir", "run"]) == 2  # cannot be said, but the exit code tells


def test_stderr_may_be_closed(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert run(["prepare", *settings(corpus)]) == 0
    assert sys.stderr is not None
    sys.stderr.close()


def test_only_the_reader_of_stdout_ends_a_command_well(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    monkeypatch.setattr("seq2seq_attn.data.prepare.prepare_corpus", fail)
    assert run(["prepare"]) == 1
    assert capfd.readouterr().err == "error: [Errno 32] Broken pipe\n"
    monkeypatch.setattr(sys, "stdout", None)  # closed by the caller, so nobody read it
    assert run(["prepare"]) == 1
    assert capfd.readouterr().err == "error: [Errno 32] Broken pipe\n"


def test_ctrl_c_while_the_command_line_is_imported_is_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "seq2seq_attn.commands.cli", Interrupted("cli"))
    assert run(["--help"]) == 130
    assert capsys.readouterr() == ("", "")
    code = "import sys, seq2seq_attn.__main__; sys.exit('typer' in sys.modules)"  # before `run` watches, that is
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_prepare_looks_into_the_source_folder_that_was_named(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong").mkdir()
    code, error = fails(capsys, "prepare", "multi30k", "--source-dir", "wrong")
    assert (code, "wrong/train.de.gz: no such file; a source folder must hold the published" in error) == (1, True)
    code, error = fails(capsys, "prepare", "captions", "--source-dir", "wrong")
    assert (code, "wrong/train.de: no such file" in error) == (1, True)
