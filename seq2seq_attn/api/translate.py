"""Translate texts, files or standard input, for `seq2seq translate`.

Output line i is always the translation of input line i. A chunk of lines is translated and written
before the next chunk is read, so memory does not grow with the input.

A run may read several sources per sentence: the sentence in several languages, or a text and a file
of vectors. The sources of a sentence are on one line, separated by tabs.
"""

import logging
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from tqdm import tqdm

from seq2seq_attn.api.documents import (
    LINES,
    check_content,
    choose_form,
    translate_file,
)
from seq2seq_attn.api.streams import (
    STREAM,
    check_files,
    line_chunks,
    open_input,
    open_output,
    shown_name,
)
from seq2seq_attn.api.writers import (
    LineForm,
    Writer,
    attention_outputs,
    line_form,
    line_writer,
    open_attention_writers,
    write_lines,
)
from seq2seq_attn.config import SearchConfig, name_numbers, plural, shorten
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.runtime.memory import (
    keep_few_primitives,
    keep_memory_flat,
    paused_collector,
    suggest_smaller_batch,
)
from seq2seq_attn.search.base import find_search
from seq2seq_attn.text.glossary import read_glossary
from seq2seq_attn.text.lines import count_lines, warn_about_tabs
from seq2seq_attn.text.marks import SPACE
from seq2seq_attn.translate.load import load
from seq2seq_attn.translate.plan import check_source
from seq2seq_attn.translate.translation import Translation
from seq2seq_attn.translate.translator import Translator

EVERY_S = 1.0
"""Seconds between updates of the progress bar."""
_MAX_EXAMPLES = 10
"""Maximum number of unknown words that a warning quotes."""

log = logging.getLogger(__name__)


def translate_lines(
    texts: Sequence[str] = (),
    *,
    run: Sequence[str | Path] = (),
    input: Sequence[str] = (),
    output: str = STREAM,
    format: str = "text",
    alignment: Path | None = None,
    attention: Sequence[Path] = (),
    document: str = "auto",
    field: str = "",
    device: str = "auto",
    precision: str = "auto",
    glossary: str | Path | None = None,
    split_sentences: str = "auto",
    **search: Any,
) -> None:
    """Translate texts, files or standard input. The arguments are the options of the command.

    Raises:
        UsageError: options contradict each other or need attention that the model does not have.
        UserError: a run or file cannot be read, or a file cannot be written.
    """
    for text in (*texts, str(search.get("prefix", ""))):
        _check_utf8(text)
    names = _find_inputs(texts, input)
    files = attention_outputs(alignment, attention)
    check_files(names, {"-o": output, **files})
    entries = read_glossary(glossary) if glossary else ()
    translator = _load(run, device, precision)
    _check_sources(texts, names, translator)
    num_sources = translator.source_tokenizer.num_columns
    _, options = find_search(translator.search, search)
    not_for_documents = {"--format json": format == "json", **files}
    not_for_documents["--n-best"] = int(search.get("n_best", 1)) > 1
    document_form = choose_form(names, document, field, num_sources, not_for_documents)
    warnings = Warnings(", ".join(map(shown_name, names)), translator, options)
    search |= {"glossary": entries, "split_sentences": split_sentences}
    with suggest_smaller_batch(options.batch_size), ExitStack() as stack:
        if document_form != LINES:
            search |= {"record": warnings.record, "field": field}
            translate_file(translator, names[0], output, document_form, **search)
        else:
            chunks = _open_chunks(stack, texts, names, document, num_sources)
            form = line_form(format, options.n_best, with_weights=bool(attention))
            writers = _open_writers(stack, translator, files, output, form)
            bar = stack.enter_context(_progress_bar(names, output))
            search["keep_attention"] = format == "json" or bool(files)
            _translate_chunks(translator, chunks, [*writers, warnings.record], bar, search)
    warnings.log_totals()


def _load(run: Sequence[str | Path], device: str, precision: str) -> Translator:
    """Load a run or an ensemble, and prepare the memory of the process for translation only."""
    keep_memory_flat()
    keep_few_primitives()
    with paused_collector():
        return load(run or None, device, precision=precision)


def _open_chunks(
    stack: ExitStack, texts: Sequence[str], names: Sequence[str], document: str, num_sources: int
) -> Iterable[list[str]]:
    """Open the input files until `stack` is closed, and return their lines in chunks. Without input
    files, return the texts as one chunk of lines."""
    if not names:
        return [_join_sources(texts, num_sources)]
    inputs = [(stack.enter_context(open_input(name)), name) for name in names]
    return line_chunks(inputs, None if document == LINES else check_content)


def _open_writers(
    stack: ExitStack,
    translator: Translator,
    files: Mapping[str, Path],
    output: str,
    form: LineForm,
) -> list[Writer]:
    """Open the output of translations and the files of attention until `stack` is closed, and
    return their writers."""
    writers = open_attention_writers(stack, translator, files)
    # The output is opened last and so closed first: drawing a picture may fail afterwards.
    out = stack.enter_context(open_output(output))
    return [line_writer(out, form), *writers]


def _translate_chunks(
    translator: Translator,
    chunks: Iterable[Sequence[str]],
    writers: Sequence[Writer],
    bar: Any,
    options: Mapping[str, Any],
) -> None:
    """Translate lines chunk by chunk, and write each chunk as soon as it is translated."""
    num_lines = 0
    warn = lru_cache(log.warning)  # logs each warning once
    for chunk in chunks:
        lines = chunk
        if translator.source_tokenizer.vector_size is not None:
            lines = _leave_out_unreadable(translator, chunk, first=num_lines)
        translated = translator.translate_lines(lines, warn=warn, **options)
        write_lines(writers, chunk, translated, first=num_lines)
        num_lines += len(chunk)
        bar.update(len(chunk))


def _leave_out_unreadable(translator: Translator, lines: Sequence[str], first: int) -> list[str]:
    """Return the lines, with an empty line in place of each line whose vectors cannot be read. Log
    a warning for each of these lines.

    Raises UserError if the vectors of the input's first line cannot be read, because the files are
    then probably in another folder. The index of `lines[0]` in the input is `first`.
    """
    readable = list(lines)
    for index, line in enumerate(lines):
        try:
            translator.source_tokenizer.tokenize(line)
        except UserError as error:
            number = first + index + 1
            if number == 1:
                raise
            log.warning("line %d: not translated: %s", number, error)
            readable[index] = ""
    return readable


def _check_utf8(text: str) -> None:
    """Raise UsageError if a command-line argument is not valid UTF-8. Python represents the invalid
    bytes of an argument by surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = shorten(text.encode("utf-8", "replace").decode())
        raise UsageError(
            f"{shown}: invalid UTF-8; expected text in UTF-8, for example from iconv -t UTF-8"
        ) from None


def _find_inputs(texts: Sequence[str], inputs: Sequence[str]) -> Sequence[str]:
    """Return the names of the input files; no name if the command line has texts.

    Raises UsageError if there are both texts and files, if standard input is named twice, or if no
    input is named and standard input is a terminal.
    """
    if texts and inputs:
        raise UsageError(f"both a text and -i {inputs[0]}: give only one of them")
    if inputs.count(STREAM) > 1:
        raise UsageError(
            "-i - -i -: standard input is named twice; give a file for each source, at most one of "
            "them -"
        )
    if not texts and not inputs and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError("nothing to translate: give a text, -i FILE, or -i - to type lines here")
    if texts:
        return []
    return inputs or [STREAM]


def _join_sources(texts: Sequence[str], number: int) -> list[str]:
    """Return the lines to translate.

    With one source, a text may have several lines. With several (`number`), consecutive texts are
    joined by tabs to a line or, if any text has a tab, each text is a line.
    """
    if number == 1:
        return "\n".join(text.rstrip("\n") for text in texts).split("\n")
    if any("\t" in text for text in texts):
        return list(texts)
    starts = range(0, len(texts), number)
    return ["\t".join(texts[start : start + number]) for start in starts]


def _check_sources(texts: Sequence[str], names: Sequence[str], translator: Translator) -> None:
    """Check that there is a text or a file for each source of the run, or raise UsageError.

    If the run reads no vectors, warn about a text that is the name of an existing file or run.
    """
    check_source(translator)
    number = translator.source_tokenizer.num_columns
    if names:
        is_complete = len(names) in (1, number)  # a single file may have columns
    else:
        has_columns = any("\t" in text for text in texts)
        is_complete = has_columns or len(texts) % number == 0
    if not is_complete:
        raise UsageError(
            f"{shorten(list(names or texts))}: expected {number}, one for each source of this run, "
            "or tabs between the sources of a line"
        )
    if translator.source_tokenizer.vector_size is not None:
        return
    for text in texts:
        # os.path.isfile, unlike Path.is_file, is False for a text too long to be a name.
        if os.path.isfile(text):
            log.warning(f"{text}: translated as text; to translate its lines, use -i {text}")
        elif os.path.isfile(os.path.join(text, "config.yaml")):
            log.warning(f"{text}: translated as text; for an ensemble of runs, add --run {text}")


def _progress_bar(names: Sequence[str], output: str) -> "tqdm[NoReturn]":
    """Return a progress bar for the lines of the first input file.

    The bar is hidden if the input is not a file, if stderr is not a terminal, or if translations go
    to the terminal that would show the bar.
    """
    is_file = bool(names) and Path(names[0]).is_file()
    is_output_shown = output == STREAM and sys.stdout is not None and sys.stdout.isatty()
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    is_shown = is_file and is_terminal and not is_output_shown
    total = None
    if is_shown:
        with suppress(UserError):  # an unreadable file is reported when it is translated
            total = count_lines(Path(names[0]))
    return tqdm(
        total=total,
        unit="line",
        delay=EVERY_S,
        mininterval=EVERY_S,
        disable=not is_shown,
        file=sys.stderr,
    )


class Warnings:
    """Count problems of the translations and log totals at the end.

    Problems are source tokens that the run does not know, lines without a translation,
    translations that end at the length limit or have warnings, and tabs in the lines of a run with
    one source.
    """

    def __init__(self, name: str, translator: Translator, search: SearchConfig) -> None:
        """Warn about words in `--prefix` that the run does not know.

        Args:
            name: name of the input in warnings; it is empty for texts on the command line.
            translator: the translator, with its tokenizers and vocabularies.
            search: options of the search.
        """
        self._where = f"{name}: " if name else ""
        self._tokenizer = translator.source_tokenizer
        self._search = search
        self._counts = Counter[str]()
        self._examples: list[str] = []
        # The numbers of lines with warnings, from 1, and the first warning.
        self._doubtful: list[int] = []
        self._reason = ""
        prefix = translator.target_tokenizer.tokenize(search.prefix)
        unknown = [_show(token) for token in prefix if token not in translator.target_vocab]
        if unknown:
            log.warning("--prefix: unknown to this run: %s", ", ".join(unknown))

    def record(self, number: int, line: str, translations: list[Translation]) -> None:
        """Count the problems of a line. This method has the signature of a `Writer`."""
        best = translations[0]
        tokens = best.source_tokens[:-1]
        self._counts.update(
            lines=1,
            tokens=len(tokens),
            unknown=len(best.unknown),
            lines_unknown=bool(best.unknown),
            with_tabs="\t" in line,
            cut=best.is_cut,
            broken=bool(tokens) and not math.isfinite(best.log_prob),
        )
        if best.warnings:
            self._reason = self._reason or best.warnings[0]
            self._doubtful.append(number + 1)
        words = dict.fromkeys([*self._examples, *map(_show, best.unknown)])
        self._examples = list(words)[:_MAX_EXAMPLES]

    def log_totals(self) -> None:
        """Log the number of lines and tokens with each problem."""
        counts = self._counts
        num_lines = plural(counts["lines"], "line")
        if self._tokenizer.num_columns == 1:
            warn_about_tabs(self._where, counts["with_tabs"])
        if counts["unknown"]:
            tokens = f"{counts['unknown']:,} of {plural(counts['tokens'], 'token')}"
            lines = f"{counts['lines_unknown']:,} of {num_lines}"
            message = "%s%s unknown to this run, on %s: %s"
            examples = ", ".join(self._examples)
            if len(self._examples) == _MAX_EXAMPLES:
                examples += ", …"
            log.warning(message, self._where, tokens, lines, examples)
        if self._doubtful:
            num_doubtful = len(self._doubtful)
            lines = name_numbers("line", self._doubtful)
            first = f"line {self._doubtful[0]}: " if num_doubtful > 1 else ""
            message = "%s%s of %s may be wrong: %s (%s%s)"
            where = f"{num_doubtful:,}"
            log.warning(message, self._where, where, num_lines, lines, first, self._reason)
        if counts["broken"]:
            message = (
                "%s%s of %s not translated: the model's probabilities are 0 or not numbers; try "
                "--precision fp32"
            )
            log.warning(message, self._where, f"{counts['broken']:,}", num_lines)
        if counts["cut"]:
            ratio = self._search.length_ratio
            limit = f"{ratio:g} * source tokens + {self._search.max_length_extra}"
            message = "%s%s of %s cut at the length limit (%s); raise it with --max-length-ratio"
            log.warning(message, self._where, f"{counts['cut']:,}", num_lines, limit)


def _show(token: str) -> str:
    """Return a token for messages, without its space mark."""
    return shorten(token.removeprefix(SPACE) or token)
