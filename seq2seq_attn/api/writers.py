"""Write the results of `translate` and `score`: text, JSON, word links, attention maps.

A writer is a function that is called with each line and its translations. Writers of pictures and
HTML pages keep the first lines in memory; all other writers keep nothing.
"""

import json
import logging
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from gzip import GzipFile
from pathlib import Path
from typing import BinaryIO

import numpy as np

from seq2seq_attn.api.streams import open_output
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import finite
from seq2seq_attn.metrics.attention import attention_links, words_from_tokens
from seq2seq_attn.runtime.extras import require
from seq2seq_attn.text.links import links_between_words, words_of
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.translate.attention_map import AttentionMap, pack_map
from seq2seq_attn.translate.figure import PLOT_SUFFIXES, write_figure
from seq2seq_attn.translate.translation import Translation
from seq2seq_attn.translate.translator import Translator

MAX_HEAT_MAPS = 20
"""Maximum number of lines that one picture shows."""
MAX_PAGE_LINES = 1_000
"""Maximum number of lines that one HTML page shows."""
_ALIGNMENT = "--alignment"

Writer = Callable[[int, str, list[Translation]], object]
"""A function that writes the results of a line. Its arguments are the line number (from 0), the
text of the line, and the translations with the best first."""
LineForm = Callable[[int, str, list[Translation]], str]
"""A function with the arguments of a `Writer` that returns the output text of the line."""

log = logging.getLogger(__name__)


def write_lines(
    writers: Sequence[Writer],
    lines: Sequence[str],
    translations: Iterable[list[Translation]],
    *,
    first: int = 0,
) -> None:
    """Pass each line and its translations to each writer. The first line has the number `first`."""
    for number, (line, translated) in enumerate(zip(lines, translations, strict=True), first):
        for write in writers:
            write(number, line, translated)


def line_writer(out: BinaryIO, form: LineForm) -> Writer:
    """Return a writer of lines to a stream. `form` formats the lines.

    The stream is flushed after each line, so that the reader of a pipe gets the line at once.
    """

    def write(number: int, line: str, translations: list[Translation]) -> None:
        out.write(f"{form(number, line, translations)}\n".encode())
        if not isinstance(out, GzipFile):  # flushing would make gzip compress each line separately
            out.flush()

    return write


def line_form(format: str, n_best: int, *, with_weights: bool) -> LineForm:
    """Return the function that formats translations.

    The format `text` is the text of the best translation. If `n_best` is above 1, `text` has a line
    per translation as in Moses: line number, text, log-probability and score, separated by `|||`.

    The format `json` is an object with the keys `line` (from 0), `source`, `text`, `score`,
    `log_prob`, `tokens`, `source_tokens`, `links`, `unknown`, `unknown_positions`, `is_cut` and
    `warnings`. `links` are pairs of a source and a target position, or null without attention.
    `unknown` are source words, and `unknown_positions` are positions of source tokens. If `n_best`
    is above 1, the key `n_best` lists the keys of each translation that do not describe the source.

    Args:
        format: `text` or `json`.
        n_best: number of translations per line.
        with_weights: whether JSON has the attention weights, with a row per target token and a
            column per source token.
    """

    def as_object(number: int, line: str, translations: list[Translation]) -> str:
        best = translations[0]
        values = {"line": number, "source": line, **_values(best, with_weights=with_weights)}
        values |= {"source_tokens": best.source_tokens, "unknown": best.unknown}
        values["unknown_positions"] = best.unknown_positions
        if n_best > 1:
            values["n_best"] = [
                _values(translation, with_weights=with_weights) for translation in translations
            ]
        return as_json(values)

    if format == "json":
        return as_object
    if n_best > 1:
        return _as_moses_lines
    return lambda number, line, translations: translations[0].text


def _values(translation: Translation, *, with_weights: bool) -> dict[str, object]:
    """Return the values of a JSON object that differ between translations of the same line."""
    values: dict[str, object] = {
        "text": translation.text,
        "score": round(translation.score, 6),
        "log_prob": round(translation.log_prob, 6),
        "tokens": translation.tokens,
        "links": None if translation.heaviest is None else translation.links(),
        "is_cut": translation.is_cut,
        "warnings": translation.warnings,
    }
    if with_weights:
        weights_TS = translation.attention
        values["weights"] = None
        if weights_TS is not None:
            values["weights"] = weights_TS.astype(float).round(4).tolist()
    return values


def _as_moses_lines(number: int, line: str, translations: list[Translation]) -> str:
    """Return a line per translation, as Moses writes n-best lists."""
    rows = []
    for translation in translations:
        scores = f"{translation.log_prob:.6f} ||| {translation.score:.6f}"
        text = translation.text.replace("|||", "&#124;&#124;&#124;")  # as Moses escapes it
        rows.append(f"{number} ||| {text} ||| {scores}")
    return "\n".join(rows)


def as_json(values: Mapping[str, object]) -> str:
    """Return a JSON object on one line. Numbers that are not finite become null."""
    return json.dumps(finite(values), ensure_ascii=False)


def check_attention(translator: Translator, option: str, path: Path) -> None:
    """Raise UsageError if the model has no attention over source positions, which `option` needs
    to write or read `path`."""
    if not translator.has_attention:
        raise UsageError(
            f"{option} {path}: this run's model has no attention over source positions"
        )


def attention_outputs(alignment: Path | None, attention: Sequence[Path]) -> dict[str, Path]:
    """Return the output files of word links and attention by option.

    The second file of `--attention` has the key `--attention (2)`, and so on.
    Raises UsageError if the suffix of an attention file is not a known format, and UserError if a
    plot is wanted and matplotlib is not installed.
    """
    outputs = {}
    if alignment is not None:
        outputs[_ALIGNMENT] = alignment
    for number, path in enumerate(attention, 1):
        suffix = path.suffix.lower()
        if suffix in PLOT_SUFFIXES:
            require("plots", "matplotlib")
        elif suffix not in (".html", ".npz"):
            raise UsageError(
                f"--attention {path}: expected a name in {', '.join(PLOT_SUFFIXES)}, .html or .npz"
            )
        outputs["--attention" if number == 1 else f"--attention ({number})"] = path
    return outputs


def open_attention_writers(
    stack: ExitStack, translator: Translator, outputs: Mapping[str, Path]
) -> list[Writer]:
    """Open the files of `attention_outputs` and return their writers.

    The files are complete when the stack is closed. Raises the UsageError of `check_attention`.
    """
    writers = []
    for option, path in outputs.items():
        check_attention(translator, option, path)
        if option == _ALIGNMENT:
            out = stack.enter_context(open_output(path))
            writers.append(line_writer(out, _link_form(translator.source_tokenizer)))
            continue
        open_writer = _npz_writer if path.suffix.lower() == ".npz" else _drawing_writer
        writers.append(stack.enter_context(open_writer(path)))
    return writers


def _link_form(source: Source) -> LineForm:
    """Return the function that formats word links: `SOURCE-TARGET` positions of words.

    Links are taken from the attention of the best translation (`attention_links`). If a line is too
    long for an attention matrix, its links between tokens are converted to links between words.
    Words are separated by spaces and tabs, and positions are counted from 0. Each vector of a
    source counts as a word.
    """

    def form(number: int, line: str, translations: list[Translation]) -> str:
        best = translations[0]
        tokens = best.source_tokens[:-1]
        target_words = words_of(best.text)
        try:
            words = source.words(line, tokens)
            if best.attention is None:
                links = links_between_words(best.links(), tokens, best.tokens, words, target_words)
            else:
                weights_TS = words_from_tokens(
                    best.attention, tokens, best.tokens, words, target_words
                )
                links = attention_links(weights_TS)
        except ValueError:
            links = []
            log.warning("line %d: its tokens do not spell its words; no links written", number + 1)
        return " ".join(f"{start}-{end}" for start, end in links)

    return form


@contextmanager
def _npz_writer(path: Path) -> Iterator[Writer]:
    """Open a writer of arrays: `attention_I`, `source_tokens_I` and `target_tokens_I` for the line
    number I (from 0).

    Lines without attention are left out. Each array is added to the archive when its line is
    written, because `numpy.savez` would hold all arrays in memory.
    """
    with open_output(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:

        def write(number: int, line: str, translations: list[Translation]) -> None:
            attention = _attention_map(number, translations[0])
            if attention is None:
                return
            arrays = {
                "attention": attention.weights_TS,
                "source_tokens": np.array(attention.source_tokens, dtype=np.str_),
                "target_tokens": np.array(attention.target_tokens, dtype=np.str_),
            }
            for name, array in arrays.items():
                with archive.open(f"{name}_{number}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)

        yield write


@contextmanager
def _drawing_writer(path: Path) -> Iterator[Writer]:
    """Open a writer that collects lines with their attention, and draws the first lines as an HTML
    page or as a picture at the end of the block. If an error ends the block, nothing is drawn."""
    from seq2seq_attn.report.html import html_maps  # slow: it imports all of the evaluation

    is_page = path.suffix.lower() == ".html"
    max_lines = MAX_PAGE_LINES if is_page else MAX_HEAT_MAPS
    drawn: list[tuple[int, str, str, AttentionMap]] = []

    def write(number: int, line: str, translations: list[Translation]) -> None:
        # One line more than is drawn tells that lines are missing.
        is_full = len(drawn) > max_lines
        attention = None if is_full else _attention_map(number, translations[0])
        if attention is not None:
            drawn.append((number, line, translations[0].text, attention))

    yield write
    if len(drawn) > max_lines:
        log.warning(f"{path}: shows only the first {max_lines} lines; a .npz file holds them all")
        drawn.pop()
    if not drawn:
        log.warning("%s: not written, no translation has any tokens", path)
        return
    with open_output(path) as out:
        if is_page:
            maps = [(number + 1, text, pack_map(attention)) for number, _, text, attention in drawn]
            out.write(html_maps(maps).encode())
            return
        from seq2seq_attn.translate.heat_maps import attention_figure

        attentions = [attention for *_, attention in drawn]
        titles = [line for _, line, *_ in drawn]
        write_figure(attention_figure(attentions, titles), out, path)


def _attention_map(number: int, translation: Translation) -> AttentionMap | None:
    """Return the attention weights with the tokens of both axes, or None if there are no weights.
    Log a warning if the line is too long for an attention matrix."""
    if translation.attention is None:
        log.warning("line %d: too long for an attention matrix; left out", number + 1)
        return None
    return translation.attention_map() if translation.attention.size else None
