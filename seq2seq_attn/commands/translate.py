"""The `translate` command: lines in, lines out. Line i out is line i in, always.

Memory does not grow with the input: what has come is translated and written before more is read.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Unpack

from seq2seq_attn.commands.notices import Notices, Progress, count_lines
from seq2seq_attn.commands.streams import STREAM, LineReader, check_files, open_input, open_output
from seq2seq_attn.commands.writers import (
    Format,
    JsonWriter,
    TextWriter,
    Writer,
    check_attention_name,
    open_attention_writers,
)
from seq2seq_attn.errors import UsageError
from seq2seq_attn.run_dir import RunDir, newest_run
from seq2seq_attn.runtime.memory import TRANSLATING_PRIMITIVES, keep_memory_flat, keep_primitives
from seq2seq_attn.text.vocab import SPECIALS
from seq2seq_attn.translate.choices import resolve_choices
from seq2seq_attn.translate.translator import Choices, Translator, load

log = logging.getLogger(__name__)


def translate(
    texts: Sequence[str] = (),
    *,
    run: str | Path | Sequence[str | Path] | None = None,
    input: str | Path | None = None,
    output: str | Path | None = None,
    format: Format = "text",
    n_best: int = 1,
    alignment: str | Path | None = None,
    attention: str | Path | None = None,
    device: str = "auto",
    precision: str = "auto",
    show_progress: bool = False,
    **choices: Unpack[Choices],
) -> None:
    """Translate texts, or a file line by line, or standard input.

    Args:
        texts: lines to translate, instead of `input`.
        run: run directory, or several for their ensemble; None: the run under `runs/` that finished last.
        input: file (plain or .gz), or "-" for standard input, which is also read where nothing else is given.
        output: file (plain or .gz), or None or "-" for standard output.
        format: `json` writes an object per line: `text`, `score`, `log_prob`, `tokens`, `source_tokens`, `links` from
            source to target positions (null without attention), `unknown` (source positions) and `is_cut`; with
            `n_best` above 1 also `n_best`, a list of such objects without `source_tokens` and `unknown`.
        n_best: above 1, that many lines a sentence: `number ||| text ||| log_prob ||| score`, number from 0.
        alignment: file for one line of Pharaoh links (`0-0 1-2`: source word, target word, both counted from 0 in the
            lines' blank-separated words) per line of input.
        attention: file for the attention: `.png`, `.svg` or `.pdf` (heat maps of the first 20 lines), `.html` (a page
            with the maps of the first 1,000) or `.npz` (arrays `attention_I`, `source_tokens_I`, `target_tokens_I` for
            line I from 0).
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        precision: `auto`, `fp32`, `bf16` or `int8`, as in `translator.load`.
        show_progress: draw a bar on stderr for an input file whose translations do not go to the terminal.
        choices: `beam_size`, `length_penalty`, `max_length_ratio`, `batch_size`, `unk` of `Translator.translate`.

    Raises:
        UsageError: options that contradict each other or ask for what the run's model cannot give.
        UserError: a run or file that cannot be read, a file that cannot be written.
    """
    _check_input(texts, input)
    check_attention_name(attention)
    check_files([] if texts else [input or STREAM], output=output, alignment=alignment, attention=attention)
    keep_memory_flat()
    keep_primitives(TRANSLATING_PRIMITIVES)
    if run is None:
        run = newest_run().path
        log.info("by %s", run)
    translator = load(run, device, precision=precision)
    check_has_attention(translator, alignment=alignment, attention=attention)
    if choices.get("unk") == "copy":
        _check_can_copy(RunDir(run if isinstance(run, str | Path) else run[0]), translator)
    choices["keep_attention"] = bool(alignment or attention) or (format == "json" and translator.has_attention)
    notices = _notices(translator, choices, n_best, None if texts else str(input or STREAM))
    with ExitStack() as stack:
        reader = None if texts else LineReader(stack.enter_context(open_input(input)), name=str(input or STREAM))
        out = stack.enter_context(open_output(output))
        side_writers = open_attention_writers(stack, alignment=alignment, attention=attention)
        text_writer = JsonWriter(out, n_best) if format == "json" else TextWriter(out, n_best)
        writers = [text_writer, *side_writers, notices]
        chunks: Iterator[Sequence[str]] = iter([texts]) if reader is None else reader.chunks()
        progress = stack.enter_context(_progress(input, output, show_progress))
        try:
            _translate_chunks(translator, chunks, writers, progress, n_best, choices)
        except BrokenPipeError:  # whoever read our output has seen enough
            _forget_stdout()
            return
    notices.report()
    if reader is not None:
        _report_invalid(reader)


def _check_input(texts: Sequence[str], input: str | Path | None) -> None:
    if texts and input is not None:
        raise UsageError(f"both a text and -i {input}: give one of them")
    if not texts and input is None and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError("nothing to translate: give a text, -i FILE, or -i - to type lines here")
    for text in texts:
        if os.path.isfile(text):  # unlike Path.is_file, False for a text too long to be a name
            log.warning("%s: translated as text; to translate the lines of that file, say -i %s", text, text)


def check_has_attention(translator: Translator, **paths: str | Path | None) -> None:
    """Raise UsageError if some option asks for attention that the model does not have."""
    for name, path in paths.items():
        if path is not None and not translator.has_attention:
            raise UsageError(f"--{name} {path}: this run's model has no attention over source positions")


def _check_can_copy(run: RunDir, translator: Translator) -> None:
    """Say so where `copy` has nothing to do: a model that never saw <unk> as a target never writes it."""
    vocab = run.config().data.vocab
    is_complete = vocab.max_size is None or len(translator.target_vocab) - len(SPECIALS) < vocab.max_size
    if vocab.min_frequency == 1 and is_complete:
        log.warning(
            "--unk copy: changes nothing, because this run never writes <unk>: all words of its training had an id; "
            "unknown source words can be copied by a run trained with data.vocab.min_frequency=2 or more"
        )


def _notices(translator: Translator, choices: Choices, n_best: int, name: str | None) -> Notices:
    options = resolve_choices(choices, n_best, translator.search)
    limit = f"{options.max_length_ratio:g} * source tokens + {options.max_length_extra}"
    if name == STREAM:
        name = "standard input"
    return Notices(name, tokenizer=translator.source_tokenizer.name, length_limit=limit)


def _progress(input: str | Path | None, output: str | Path | None, show_progress: bool) -> Progress:
    """Of a file: a bar, unless the translations appear on the same terminal; without a terminal, lines in the log."""
    if input is None or str(input) == STREAM:
        return Progress(None, "nothing")
    num_lines = count_lines(Path(input))
    if not show_progress:
        return Progress(num_lines, "log")
    is_to_terminal = (output is None or str(output) == STREAM) and sys.stdout is not None and sys.stdout.isatty()
    return Progress(num_lines, "nothing" if is_to_terminal else "bar")


def _report_invalid(reader: LineReader) -> None:
    if not reader.num_invalid:
        return
    log.warning(
        "%s: %d of %d lines held invalid UTF-8; the bytes in question were replaced by U+FFFD",
        "standard input" if reader.name == STREAM else reader.name,
        reader.num_invalid,
        reader.num_lines,
    )


def _translate_chunks(
    translator: Translator,
    chunks: Iterator[Sequence[str]],
    writers: Sequence[Writer],
    progress: Progress,
    n_best: int,
    choices: Choices,
) -> None:
    number = 0
    for chunk in chunks:
        for line, translations in zip(chunk, translator.translate_lines(chunk, n_best=n_best, **choices), strict=True):
            for writer in writers:
                writer.write(number, line, translations)
            number += 1
        for writer in writers:
            writer.flush()
        progress.add(len(chunk))


def _forget_stdout() -> None:
    """Point standard output at nothing, so that Python does not complain when it flushes at exit."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        pass  # standard output is no real file
