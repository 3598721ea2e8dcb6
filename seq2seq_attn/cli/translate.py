"""`seq2seq translate`."""

from pathlib import Path
from typing import Annotated, Literal, TypedDict, Unpack

import typer

from seq2seq_attn.cli import options as shared
from seq2seq_attn.config import SearchConfig
from seq2seq_attn.runtime.memory import paused_collector
from seq2seq_attn.text.documents.forms import FORMS

_WITHOUT_OPTION = ("max_length_extra", "scorers")
"""search settings that only `--set` takes"""
_SEARCH_OPTIONS = [name for name in SearchConfig.model_fields if name not in _WITHOUT_OPTION]


class TranslateOptions(TypedDict, total=False):
    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT",
            help="Sentences; for a source of vectors, paths of .npy files or FILE.npz:KEY.",
            show_default=False,
        ),
    ]
    run: Annotated[
        list[Path],
        shared.option(
            "RUN",
            "Run directory; repeat the option for an ensemble of several runs.",
            "--run",
            "--run-dir",
            default="the run that finished last",
            callback=shared.open_runs,
        ),
    ]
    input: Annotated[
        list[str],
        shared.option(
            "FILE|-",
            "Lines to translate. For several sources, a file for each, or one with tab-separated "
            "columns.",
            "-i",
            "--input",
            default="-",
        ),
    ]
    output: Annotated[str, shared.option("FILE|-", "Translations.", "-o", "--output", default="-")]
    format: Annotated[
        shared.Format,
        shared.option(
            "text|json",
            "json: an object per line, with --attention also the weights.",
            default="text",
        ),
    ]
    document: Annotated[
        str,
        shared.option(
            "auto|lines|FORM",
            f"FORM: {', '.join(FORMS)}, a document of which only the text is translated. auto: the "
            "form that the suffix of FILE names; other documents are refused. lines: each line is "
            "a text, whatever it looks like.",
            default="auto",
        ),
    ]
    field: Annotated[
        str,
        shared.option(
            "NAME", "The field of JSON lines or the column of a table to translate.", default=False
        ),
    ]
    glossary: shared.Glossary
    split_sentences: Annotated[
        Literal["auto", "off"],
        shared.option(
            "auto|off",
            "auto: translate each sentence of a line by itself, if the run was trained on single "
            "sentences.",
            default="auto",
        ),
    ]
    alignment: shared.Alignment
    attention: shared.Attention
    device: shared.Device
    precision: shared.TranslationPrecision


@shared.command(search=_SEARCH_OPTIONS)
def translate(**options: Unpack[TranslateOptions]) -> None:
    """Translate texts, a file or standard input, line by line.

    Output line i translates input line i. A run with several sources takes one TEXT or one -i FILE
    for each source, or lines with a column for each source, separated by tabs.
    """
    with paused_collector():
        from seq2seq_attn.api.translate import translate_lines

    translate_lines(**options)
