"""The `translate` command. Output line i is always the translation of input line i.

Memory does not grow with the input: each chunk is translated and written before the next is read.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from seq2seq_attn.cli.notices import Notices, Progress, count_lines, warn_of_prefix
from seq2seq_attn.cli.streams import STREAM, LineReader, check_files, line_chunks, open_input, open_output
from seq2seq_attn.cli.writers import (
    Format,
    JsonWriter,
    TextWriter,
    Writer,
    check_attention_name,
    open_attention_writers,
)
from seq2seq_attn.config import shorten
from seq2seq_attn.errors import UsageError
from seq2seq_attn.run_dir import newest_run
from seq2seq_attn.runtime.memory import TRANSLATING_PRIMITIVES, keep_memory_flat, keep_primitives
from seq2seq_attn.search.options import AS_CONFIGURED, SearchOptions
from seq2seq_attn.text.tokenizers.base import SOURCE_END
from seq2seq_attn.text.tokenizers.several import num_sources, vector_sizes
from seq2seq_attn.translate.batching import explained_batch_size
from seq2seq_attn.translate.translator import Translator, load

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TranslationRequest:
    """Texts to translate, runs that translate them, options, and files to write."""

    texts: Sequence[str] = ()
    """lines to translate, instead of `inputs`; for a run with several sources, the text of each in turn, or lines with
    tabs between them; for a source of vectors, the path of a .npy file, or FILE.npz:KEY"""
    runs: Sequence[str | Path] = ()
    """run directory, or several for their ensemble; none: the run in `runs/` that finished last"""
    inputs: Sequence[str | Path] = ()
    """file (plain or .gz), or "-" for standard input, which is also the default; for a run with several sources, a file
    for each, or one with tabs between them"""
    output: str | Path | None = None
    """file (plain or .gz), or None or "-" for standard output"""
    format: Format = "text"
    """`json` writes an object per line: `text`, `score`, `log_prob`, `tokens`, `source_tokens`, `links` from source to
    target positions (null without attention), `unknown` (source positions) and `is_cut`; with several translations per
    sentence also `n_best`, a list of such objects without `source_tokens` and `unknown`"""
    search: SearchOptions = AS_CONFIGURED
    """if `n_best` is above 1, text output has that many lines per sentence: `number ||| text ||| log_prob ||| score`,
    with the sentence's number from 0"""
    alignment: str | Path | None = None
    """file for one line of Pharaoh links (`0-0 1-2`: source word, target word, both counted from 0, words split
    at spaces and tabs) per line of input"""
    attention: str | Path | None = None
    """file for the attention: `.png`, `.svg` or `.pdf` (heat maps of the first 20 lines), `.html` (a page with the maps
    of the first 1,000) or `.npz` (arrays `attention_I`, `source_tokens_I`, `target_tokens_I` for line I from 0)"""
    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:N`"""
    precision: str = "auto"
    """`auto`, `fp32`, `bf16` or `int8`, as in `translator.load`"""
    show_progress: bool = False
    """draw a bar on stderr for an input file whose translations do not go to the terminal"""

    @property
    def attention_files(self) -> dict[str, str | Path | None]:
        """The files that attention is written to, by option."""
        return {"alignment": self.alignment, "attention": self.attention}

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs; none for texts."""
        return [] if self.texts else [str(path) for path in self.inputs or [STREAM]]


def translate(request: TranslationRequest) -> None:
    """Translate texts, or a file line by line, or standard input.

    Raises:
        UsageError: options contradict each other or need attention that the model does not have.
        UserError: a run or file cannot be read, or a file cannot be written.
    """
    _check_input(request)
    check_attention_name(request.attention)
    names = request.input_names
    output = STREAM if request.output is None else request.output
    check_files(names, {"-o": output, "--alignment": request.alignment, "--attention": request.attention})
    translator = _load(request)
    _check_num_sources(request, translator)
    _check_names(request, any(vector_sizes(translator.source_tokenizer)))
    check_has_attention(translator, **request.attention_files)
    keep_attention = any(request.attention_files.values()) or (request.format == "json" and translator.has_attention)
    search = request.search.model_copy(update={"keep_attention": keep_attention}).over(translator.search)
    warn_of_prefix(translator, search.prefix)
    notices = _notices(translator, search, names)
    with ExitStack() as stack:
        readers = [LineReader(stack.enter_context(open_input(name)), name=name) for name in names]
        side_writers = open_attention_writers(stack, **request.attention_files)
        out = stack.enter_context(open_output(request.output))  # complete before a picture is drawn, which may fail
        text_writer = (JsonWriter if request.format == "json" else TextWriter)(out, search.n_best)
        writers = [text_writer, *side_writers, notices]
        chunks = (
            line_chunks(readers) if readers else iter([_lines(request.texts, num_sources(translator.source_tokenizer))])
        )
        progress = stack.enter_context(_progress(request))
        with explained_batch_size(search.batch_size):
            _translate_chunks(translator, chunks, writers, progress, search)
    notices.report()
    for reader in readers:
        _report_invalid(reader)


def _load(request: TranslationRequest) -> Translator:
    keep_memory_flat()
    keep_primitives(TRANSLATING_PRIMITIVES)
    runs = list(request.runs)
    if not runs:
        runs = [newest_run().path]
        log.info("model: %s", runs[0])
    return load(runs, request.device, precision=request.precision)


def _check_input(request: TranslationRequest) -> None:
    if request.texts and request.inputs:
        raise UsageError(f"both a text and -i {request.inputs[0]}: give only one of them")
    if [str(path) for path in request.inputs].count(STREAM) > 1:
        raise UsageError("-i - -i -: standard input is named twice; give a file for each source, at most one of them -")
    for text in (*request.texts, request.search.prefix):
        shown = text.encode("utf-8", "replace").decode()
        if shown != text:  # Python keeps the bytes of an argument that are not UTF-8 as surrogates
            raise UsageError(
                f"{shorten(shown)}: invalid UTF-8; expected text in UTF-8, for example from iconv -t UTF-8"
            )
    if not request.texts and not request.inputs and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError("nothing to translate: give a text, -i FILE, or -i - to type lines here")


def _lines(texts: Sequence[str], number: int) -> list[str]:
    """A line per sentence: texts that hold no tab are those of a `number` of sources in turn."""
    if number == 1 or any(SOURCE_END in text for text in texts):
        return list(texts)
    return [SOURCE_END.join(texts[start : start + number]) for start in range(0, len(texts), number)]


def _check_num_sources(request: TranslationRequest, translator: Translator) -> None:
    """Raise UsageError if there is not a text or a file for each source."""
    number, names, texts = num_sources(translator.source_tokenizer), request.input_names, request.texts
    if number == 1 and len(names) > 1:
        raise UsageError(
            f"-i {names[1]}: this run reads one source; concatenate the files, or run the command once per file"
        )
    if len(names) > 1 and len(names) != number:
        raise UsageError(
            f"-i given {len(names)} times: this run reads {number} sources; give one file per source, or one file with "
            "tabs between the sources"
        )
    if len(texts) % number and not any(SOURCE_END in text for text in texts):
        raise UsageError(
            f"{len(texts)} {'text' if len(texts) == 1 else 'texts'}: this run reads {number} sources; give one text "
            "per source, or lines with tabs between the sources"
        )


def _check_names(request: TranslationRequest, reads_vectors: bool) -> None:
    """Raise UsageError for an input that is itself a source of vectors; warn of a text that is the name of a file, if
    the run reads texts only."""
    for name in request.input_names if reads_vectors else ():
        if Path(name).suffix in (".npy", ".npz"):
            raise UsageError(f"-i {name}: expected a file with the path of a .npy file, or FILE.npz:KEY, on each line")
    for text in request.texts if not reads_vectors else ():
        if os.path.isfile(text):  # unlike Path.is_file, False for a text too long to be a name
            log.warning("%s: translated as text; to translate the lines of this file, use -i %s", text, text)


def check_has_attention(translator: Translator, **paths: str | Path | None) -> None:
    """Raise UsageError if an option needs attention that the model does not have."""
    for name, path in paths.items():
        if path is not None and not translator.has_attention:
            raise UsageError(f"--{name} {path}: this run's model has no attention over source positions")


def _notices(translator: Translator, search: SearchOptions, names: Sequence[str]) -> Notices:
    limit = f"{search.length_ratio:g} * source tokens + {search.max_length_extra}"
    name = ", ".join("standard input" if name == STREAM else name for name in names)
    return Notices(name or None, tokenizer=translator.source_tokenizer, length_limit=limit)


def _progress(request: TranslationRequest) -> Progress:
    """For a file: a bar, unless translations go to the same terminal; without a terminal, log lines."""
    output = request.output
    if not request.inputs or str(request.inputs[0]) == STREAM:
        return Progress(None, "nothing")
    num_lines = count_lines(Path(request.inputs[0]))
    if not request.show_progress:
        return Progress(num_lines, "log")
    is_to_terminal = (output is None or str(output) == STREAM) and sys.stdout is not None and sys.stdout.isatty()
    return Progress(num_lines, "nothing" if is_to_terminal else "bar")


def _report_invalid(reader: LineReader) -> None:
    if not reader.num_invalid:
        return
    log.warning(
        "%s: %d of %d lines had invalid UTF-8; the invalid bytes were replaced by U+FFFD",
        "standard input" if reader.name == STREAM else reader.name,
        reader.num_invalid,
        reader.num_lines,
    )


def _translate_chunks(
    translator: Translator,
    chunks: Iterator[Sequence[str]],
    writers: Sequence[Writer],
    progress: Progress,
    search: SearchOptions,
) -> None:
    number = 0
    for chunk in chunks:
        for line, translations in zip(chunk, translator.translate_lines(chunk, search), strict=True):
            for writer in writers:
                writer.write(number, line, translations)
            number += 1
        for writer in writers:
            writer.flush()
        progress.add(len(chunk))
