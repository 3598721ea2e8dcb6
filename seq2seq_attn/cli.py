"""The command line: prepare, train, evaluate, translate. Each command parses, then calls one function.

Nothing heavy is imported before a command runs, so that help answers at once. Results go to stdout; logs and bars go to
stderr. An error is one line on stderr; `--debug` shows where it came from.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from seq2seq_attn import __version__
from seq2seq_attn.errors import UsageError, UserError

PROGRAM = "seq2seq"
INTERRUPTED, TERMINATED = 130, 143
CORPUS_CONFIGS = {"multi30k": "multi30k", "captions": "quickstart"}
"""the corpora `prepare` takes by name, each with the packaged configuration that says how to prepare it"""

app = typer.Typer(
    name=PROGRAM,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    help="Neural machine translation with recurrent networks and attention: train, measure, translate.",
    epilog="Start with: seq2seq train -c quickstart; then seq2seq evaluate, and seq2seq translate 'Ein Hund rennt.'",
)

Config = Annotated[
    list[str] | None,
    typer.Option(
        "--config", "-c", metavar="NAME|FILE", help="Packaged configuration or YAML file; of several, later wins."
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="One setting, for example model.hidden_size=256; may be repeated."),
]
Device = Annotated[str | None, typer.Option(metavar="auto|cpu|cuda[:N]", help="Where to compute.", show_default="auto")]
BeamSize = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Hypotheses kept per sentence; 1 is greedy.", show_default="the run's"),
]
LengthPenalty = Annotated[
    float | None, typer.Option(metavar="A", help="Scores are log P / length ** A.", show_default="the run's")
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Sentences translated at once; changes speed, not results.", show_default="the run's"
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error, and more of the log.")]


def main() -> NoReturn:
    """What the installed command `seq2seq` runs."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the exit code. Nothing is raised, unless `--debug` asks for the traceback."""
    is_debug = "--debug" in takewhile(lambda argument: argument != "--", arguments)
    try:
        with _logging_to_stderr(is_debug=is_debug), _exit_on_sigterm():
            code = app(args=list(arguments or ["--help"]), prog_name=PROGRAM, standalone_mode=False)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    except BrokenPipeError:
        _drop_stdout()  # whoever reads our output has seen enough
        return 0
    except Exception as error:
        if is_debug and not _is_from_parser(error):
            traceback.print_exc()
        return _complain(error)
    return code if isinstance(code, int) else 0


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.command()
def prepare(
    corpus: Annotated[
        str | None, typer.Argument(metavar="[multi30k|captions]", help="A corpus by name.", show_default=False)
    ] = None,
    config: Config = None,
    settings: Set = None,
    data_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where data lies.", show_default="data")] = None,
    source_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A folder that holds the published .gz files: same checksums, no network."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Fetch, check and number a corpus; print an audit.

    Without arguments: multi30k. A corpus that was prepared the same way before is reused.
    """
    from seq2seq_attn.config import load_config
    from seq2seq_attn.data.prepare import audit_report, prepare_corpus

    overrides = [*(settings or []), *_as_settings({"data.data_dir": data_dir, "data.source_dir": source_dir})]
    prepared = prepare_corpus(load_config(_prepare_sources(corpus, config), overrides), show_progress=_is_terminal())
    typer.echo(audit_report(prepared))


@app.command()
def train(
    config: Config = None,
    settings: Set = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the run is written.", show_default="runs/<date>-<config>-s<seed>"),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on exactly where --run-dir, or the newest unfinished run, was interrupted."),
    ] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that is in --run-dir.")] = False,
    device: Device = None,
    precision: Annotated[
        str | None, typer.Option(metavar="auto|fp32|bf16|fp16", help="Arithmetic of the model.", show_default="auto")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Decides weights, batches and dropout.", show_default="1")
    ] = None,
    dump_config: Annotated[bool, typer.Option("--dump-config", help="Print all settings as YAML and exit.")] = False,
    debug: Debug = False,
) -> None:
    """Train a model, preparing the data if need be.

    Without options: the multi30k configuration. Ctrl-C saves a state that --resume takes up, bit for bit on a CPU.
    """
    from seq2seq_attn.config import dump_config as dump
    from seq2seq_attn.train.start import load_settings

    named = {"train.device": device, "train.precision": precision, "seed": seed}
    overrides = [*(settings or []), *_as_settings(named)]
    resolved, run_dir = load_settings(config or [], overrides, run_dir=run_dir, resume=resume)
    if dump_config:
        typer.echo(dump(resolved), nl=False)
        return
    from seq2seq_attn.train.loop import train as run_training

    typer.echo(run_training(resolved, run_dir=run_dir, resume=resume, overwrite=overwrite).path)


def _prepare_sources(corpus: str | None, config: list[str] | None) -> list[str]:
    if corpus is not None and config:
        raise UsageError(f"{corpus!r} and --config: name the corpus or give a configuration, not both")
    if corpus is not None and corpus not in CORPUS_CONFIGS:
        raise UsageError(f"corpus {corpus!r}: known by name are {', '.join(CORPUS_CONFIGS)}; for others give -c CONFIG")
    return config or [CORPUS_CONFIGS[corpus or "multi30k"]]


def _as_settings(named: Mapping[str, object]) -> list[str]:
    """Options that are settings by another name, as `--set` takes them (JSON is YAML: nothing is reinterpreted)."""
    import json

    values = {key: str(value) if isinstance(value, Path) else value for key, value in named.items()}
    return [f"{key}={json.dumps(value)}" for key, value in values.items() if value is not None]


def _is_terminal() -> bool:
    return sys.stderr.isatty()


@contextmanager
def _logging_to_stderr(*, is_debug: bool) -> Iterator[None]:
    """The package's log, a bare line each, above any bar that is there."""

    class AboveBars(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            from tqdm import tqdm

            tqdm.write(self.format(record), file=sys.stderr)

    package, handler = logging.getLogger("seq2seq_attn"), AboveBars()
    former = package.level
    package.addHandler(handler)
    package.setLevel(logging.DEBUG if is_debug else logging.INFO)
    try:
        yield
    finally:
        package.removeHandler(handler)
        package.setLevel(former)


@contextmanager
def _exit_on_sigterm() -> Iterator[None]:
    """SIGTERM unwinds the stack (temporary files are removed) instead of ending the process on the spot."""

    def leave(signal_number: int, frame: object) -> NoReturn:
        raise SystemExit(TERMINATED)

    former = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def _is_from_parser(error: Exception) -> bool:
    """Whether Typer's parser refused the command line (its exception's home differs from version to version)."""
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def _complain(error: Exception) -> int:
    if _is_from_parser(error):
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else PROGRAM
        text, code = f"{error.format_message()} See '{path} --help'.", 2  # type: ignore[attr-defined]
    elif isinstance(error, UserError):
        text, code = str(error), error.exit_code
    elif isinstance(error, OSError):
        text, code = f"{error.filename}: {error.strerror}" if error.filename else str(error), 1
    else:
        text, code = f"{type(error).__name__}: {error} (a fault of the program: --debug shows where)", 1
    typer.echo(f"error: {' '.join(text.split())}", err=True)
    return code


def _drop_stdout() -> None:
    """Let the interpreter's last flush go nowhere instead of failing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
