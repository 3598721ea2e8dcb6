"""The command line. A file named by a verb declares the options of a command (`evaluate.py`); the file named by its
noun (`evaluation.py`) does the work.

Nothing heavy is imported before a command runs, so that help is fast. Results go to stdout. `__main__.py` handles
errors and signals.
"""

from typing import Annotated

import typer

from seq2seq_attn import __version__
from seq2seq_attn.cli.compare import compare
from seq2seq_attn.cli.evaluate import evaluate
from seq2seq_attn.cli.export import export
from seq2seq_attn.cli.options import echo
from seq2seq_attn.cli.parser import GroupedCommand
from seq2seq_attn.cli.prepare import prepare
from seq2seq_attn.cli.push import push
from seq2seq_attn.cli.score import score
from seq2seq_attn.cli.serve import serve
from seq2seq_attn.cli.train import train
from seq2seq_attn.cli.translate import translate

PROGRAM = "seq2seq"
_START = """\b
Start with (minutes, no download):
  seq2seq train -c quickstart
  seq2seq evaluate
  seq2seq translate "Der kleine Hund, den die Frau sieht, schläft heute."
"""
_EXIT_CODES = (
    "Exit codes: 0: success. 2: a mistake in the command line or the configuration. 1: something else failed (a file, "
    "a run directory, the network, memory). 130: Ctrl-C, 143: SIGTERM, 129: SIGHUP; train saves its state first."
)

app = typer.Typer(
    name=PROGRAM,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    help="Neural machine translation with recurrent networks and attention.",
    epilog=f"{_START}\n\n{_EXIT_CODES}",
)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


_COMMANDS = (prepare, train, evaluate, translate, score, compare, export, serve, push)
COMMANDS = [command.__name__ for command in _COMMANDS]

for command in _COMMANDS:
    app.command(cls=GroupedCommand)(command)
