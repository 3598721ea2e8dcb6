"""The command line: prepare, train, evaluate, translate. Each command parses, then calls one function.

Nothing heavy is imported before a command runs, so that help answers at once. Results go to stdout. What becomes of
errors and signals is decided in `__main__.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn import __version__
from seq2seq_attn.errors import UsageError

PROGRAM = "seq2seq"
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


class Side(StrEnum):
    """The values of `--length-of`."""

    SOURCE = "source"
    REFERENCE = "reference"


ByLength = Annotated[
    str | None,
    typer.Option(
        metavar="EDGES",
        help="First lengths of the buckets, as 9,12,15, or quantiles:N.",
        show_default="as fits the corpus",
    ),
]
LengthOf = Annotated[Side, typer.Option(metavar="source|reference", help="The side whose tokens are counted.")]


class Metric(StrEnum):
    """The values of `--metric`."""

    BLEU = "bleu"
    BLEU_LOWERCASE = "bleu_lowercase"
    BLEU_TUTORIAL = "bleu_tutorial"
    CHRF = "chrf"
    TER = "ter"


Stitch = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        metavar="K",
        help="Join K sentence pairs to one; may be repeated, each K apart.",
        show_default="as they are",
    ),
]
Metrics = Annotated[
    list[Metric] | None,
    typer.Option(
        "--metric",
        metavar="|".join(Metric),
        help="What to score by; may be repeated.",
        show_default="all but ter",
    ),
]


class Unk(StrEnum):
    """The values of `--unk`."""

    KEEP = "keep"
    COPY = "copy"
    FORBID = "forbid"


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
    typer.Option(
        min=1, max=1000, metavar="N", help="Hypotheses kept per sentence; 1 is greedy.", show_default="the run's"
    ),
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
TranslationPrecision = Annotated[
    str | None,
    typer.Option(
        "--precision", metavar="auto|fp32|bf16|int8", help="Arithmetic of the model.", show_default="auto: fp32"
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error, and more of the log.")]


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
        str | None, typer.Argument(metavar="multi30k|captions", help="A corpus by name.", show_default=False)
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


@app.command()
def evaluate(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN", help="Run directories.", show_default="the run that finished last"),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Part of the runs' corpus; may be repeated.", show_default="its test sets"),
    ] = None,
    source: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Instead of a split: sentences to translate, one a line.")
    ] = None,
    reference: Annotated[Path | None, typer.Option(metavar="FILE", help="The translations of --source.")] = None,
    stitch: Stitch = None,
    metric: Metrics = None,
    by_length: ByLength = None,
    length_of: LengthOf = Side.SOURCE,
    merge_below: Annotated[
        int, typer.Option(min=0, metavar="N", help="Join a bucket of fewer pairs to its smaller neighbour.")
    ] = 0,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    batch_size: BatchSize = None,
    reuse_hypotheses: Annotated[
        bool,
        typer.Option("--reuse-hypotheses", help="Take saved translations if the same model made them in the same way."),
    ] = False,
    no_attention: Annotated[
        bool, typer.Option("--no-attention", help="Leave out entropy, coverage and alignment of the attention.")
    ] = False,
    json: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the report goes.", show_default="report[.FILE].json of the run"),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md|.html",
            help="Where the page to read goes; .html holds sentences and attention too.",
            show_default="beside the JSON",
        ),
    ] = None,
    device: Device = None,
    precision: TranslationPrecision = None,
    debug: Debug = False,
) -> None:
    """Translate test sets and score runs, side by side.

    BLEU and chrF with their signatures, and BLEU by sentence length with intervals; several runs are compared with the
    first, and those that differ in their seed alone as one. What attention does is judged too, on gold links if any.
    """
    from seq2seq_attn.commands.evaluate import evaluate as run_evaluation
    from seq2seq_attn.metrics.bleu import DEFAULT_MEASURES
    from seq2seq_attn.run_dir import newest_run

    found = run_evaluation(
        runs or [newest_run().path],
        splits=split or [],
        source=source,
        reference=reference,
        stitch=stitch or [],
        measures=[one.value for one in dict.fromkeys(metric)] if metric else DEFAULT_MEASURES,
        by_length=by_length,
        length_of=length_of.value,
        merge_below=merge_below,
        beam_size=beam_size,
        length_penalty=length_penalty,
        batch_size=batch_size,
        json_path=json,
        report_path=report,
        device=device or "auto",
        precision=precision or "auto",
        reuse_hypotheses=reuse_hypotheses,
        judge_attention=not no_attention,
        show_progress=_is_terminal(),
    )
    typer.echo(found.text)


@app.command()
def translate(
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="Sentences.", show_default=False)] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Run directory.", show_default="the run that finished last")
    ] = None,
    input: Annotated[
        str | None, typer.Option("-i", "--input", metavar="FILE|-", help="Lines to translate.", show_default="-")
    ] = None,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE|-", help="Translations.", show_default="-")
    ] = None,
    beam_size: BeamSize = None,
    n_best: Annotated[int, typer.Option(min=1, metavar="N", help="Translations per sentence.")] = 1,
    length_penalty: LengthPenalty = None,
    unk: Annotated[
        Unk,
        typer.Option(
            metavar="keep|copy|forbid", help="Unknown words: keep <unk>, copy by attention, or never choose one."
        ),
    ] = Unk.KEEP,
    alignment: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write word links, a line each: 0-0 1-2 (source-target).")
    ] = None,
    attention: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png|.html|.npz", help="Write the attention as pictures, a page, or arrays."),
    ] = None,
    batch_size: BatchSize = None,
    device: Device = None,
    precision: TranslationPrecision = None,
    debug: Debug = False,
) -> None:
    """Translate texts, a file or standard input: line i out is line i in.

    A blank line gives a blank line; memory does not grow with the file.
    """
    from seq2seq_attn.commands.translate import translate as run_translation

    run_translation(
        texts or [],
        run=run,
        input=input,
        output=output,
        beam_size=beam_size,
        n_best=n_best,
        length_penalty=length_penalty,
        unk=unk.value,
        alignment=alignment,
        attention=attention,
        batch_size=batch_size,
        device=device or "auto",
        precision=precision or "auto",
    )


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
