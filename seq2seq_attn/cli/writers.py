"""Writers of the `translate` and `score` commands: text, JSON, word links, attention maps.

Writers take lines one by one and keep none, except for heat maps and pages, which keep the first few.
"""

from __future__ import annotations

import json
import logging
import math
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

import numpy as np

from seq2seq_attn.cli.options import Format
from seq2seq_attn.cli.streams import open_output
from seq2seq_attn.errors import UsageError
from seq2seq_attn.report.html import TranslatedLine, html_maps
from seq2seq_attn.text.links import links_between_words, words_of
from seq2seq_attn.text.tokenizers.several import source_words
from seq2seq_attn.translate.attention_map import AttentionMap
from seq2seq_attn.translate.figure import PLOT_SUFFIXES, write_figure
from seq2seq_attn.translate.packed_map import pack_map
from seq2seq_attn.translate.translator import Translation, Translator

MAX_HEAT_MAPS = 20
"""lines in one picture"""
MAX_PAGE_LINES = 1_000
"""lines on one HTML page"""

KeptT = TypeVar("KeptT")

log = logging.getLogger(__name__)


class Writer(ABC):
    """Takes the translations of lines, one line at a time."""

    @abstractmethod
    def write(self, number: int, line: str, translations: list[Translation]) -> None:
        """Write the translations of line `number` (from 0), best first."""

    def flush(self) -> None:  # noqa: B027
        """Flush buffers to the reader; without buffers, no effect."""


LineForm = Callable[[int, str, list[Translation]], str]
"""the output line for a line's number, its text, and its translations, best first"""


class LineWriter(Writer):
    """Writes to a stream in one of the forms below."""

    def __init__(self, out: BinaryIO, form: LineForm) -> None:
        self._out = out
        self._form = form

    def write(self, number: int, line: str, translations: list[Translation]) -> None:
        """See `Writer`."""
        self._out.write(f"{self._form(number, line, translations)}\n".encode())

    def flush(self) -> None:
        """See `Writer`."""
        self._out.flush()


def line_form(format: Format, n_best: int) -> LineForm:
    """The form of translations: the best text, or of several translations a line each as in Moses. `json`: an object
    with `text`, `score`, `log_prob`, `tokens`, `source_tokens`, `links` from source to target positions (null without
    attention), `unknown` (source positions) and `is_cut`; with several translations also `n_best`, a list of such
    objects without `source_tokens` and `unknown`."""

    def form(number: int, line: str, translations: list[Translation]) -> str:
        best = translations[0]
        if format == "json":
            values = {**_values(best), "source_tokens": best.source_tokens, "unknown": best.unknown}
            return as_json(values if n_best == 1 else {**values, "n_best": [_values(t) for t in translations]})
        if n_best == 1:
            return best.text
        return "\n".join(f"{number} ||| {t.text} ||| {t.log_prob:.6f} ||| {t.score:.6f}" for t in translations)

    return form


def as_json(values: Mapping[str, object]) -> str:
    """An object on one line."""
    return json.dumps(values, ensure_ascii=False, allow_nan=False)


def _values(translation: Translation) -> dict[str, object]:
    score, log_prob = (
        round(value, 6) if math.isfinite(value) else None for value in (translation.score, translation.log_prob)
    )
    return {
        "text": translation.text,
        "score": score,
        "log_prob": log_prob,
        "tokens": translation.tokens,
        "links": None if translation.heaviest is None else translation.links(),
        "is_cut": translation.is_cut,
    }


def _word_links(number: int, line: str, translations: list[Translation]) -> str:
    """Word links of the best translation by its attention, `source-target`. Words are separated by spaces and tabs and
    counted from 0; each vector of a source counts as a word."""
    best = translations[0]
    tokens = best.source_tokens[:-1]
    try:
        links = links_between_words(best.links(), tokens, best.tokens, source_words(line, tokens), words_of(best.text))
    except ValueError:
        links = []
        log.warning("line %d: its tokens do not spell its words; no links written", number + 1)
    return " ".join(f"{source}-{target}" for source, target in links)


class NpzWriter(Writer):
    """Arrays `attention_I`, `source_tokens_I`, `target_tokens_I` of each line with a translation, written to the
    archive one by one (`numpy.savez` would hold them all in memory)."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def write(self, number: int, line: str, translations: list[Translation]) -> None:
        """See `Writer`."""
        attention = _attention_map(number, translations[0])
        if attention is None:
            return
        arrays = {
            "attention": attention.weights_TS,
            "source_tokens": np.array(attention.source_tokens, dtype=np.str_),
            "target_tokens": np.array(attention.target_tokens, dtype=np.str_),
        }
        for name, array in arrays.items():
            with self._archive.open(f"{name}_{number}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


class _FirstLinesWriter(Writer, Generic[KeptT]):
    """Keeps the first lines that have attention, and writes them to one file at the end."""

    def __init__(self, path: Path, max_lines: int) -> None:
        self._path = path
        self._max_lines = max_lines
        self._kept: list[KeptT] = []
        self._is_full = False

    def write(self, number: int, line: str, translations: list[Translation]) -> None:
        """See `Writer`."""
        if self._is_full or (attention := _attention_map(number, translations[0])) is None:
            return
        if len(self._kept) < self._max_lines:
            self._kept.append(self._keep(number, line, translations[0], attention))
        else:
            self._is_full = True
            log.warning("%s: shows only the first %d lines; a .npz file holds them all", self._path, self._max_lines)

    def save(self) -> None:
        """Write the file."""
        if not self._kept:
            log.warning("%s: not written, no translation has any tokens", self._path)
            return
        with open_output(self._path) as out:
            self._draw(out)

    @abstractmethod
    def _keep(self, number: int, line: str, best: Translation, attention: AttentionMap) -> KeptT: ...

    @abstractmethod
    def _draw(self, out: BinaryIO) -> None: ...


class HeatMapWriter(_FirstLinesWriter[tuple[AttentionMap, str]]):
    """Draws lines in one picture."""

    def _keep(self, number: int, line: str, best: Translation, attention: AttentionMap) -> tuple[AttentionMap, str]:
        return attention, line

    def _draw(self, out: BinaryIO) -> None:
        from seq2seq_attn.translate.heat_maps import attention_figure

        maps, titles = zip(*self._kept, strict=True)
        write_figure(attention_figure(maps, titles), out, _kind(self._path))


class PageWriter(_FirstLinesWriter[TranslatedLine]):
    """Shows lines with their attention on one HTML page."""

    def _keep(self, number: int, line: str, best: Translation, attention: AttentionMap) -> TranslatedLine:
        return TranslatedLine(number + 1, best.text, pack_map(attention))

    def _draw(self, out: BinaryIO) -> None:
        out.write(html_maps(self._kept).encode())


AttentionFiles = str | Path | Sequence[str | Path] | None


def attention_outputs(attention: AttentionFiles) -> dict[str, Path]:
    """The attention files, by option, with a number from the second on.

    Raises:
        UsageError: a file's suffix is not one of a kind of attention file.
    """
    paths = [attention] if isinstance(attention, str | Path) else attention or []
    for path in paths:
        if _kind(path) not in (*PLOT_SUFFIXES, ".html", ".npz"):
            kinds = f"{', '.join(PLOT_SUFFIXES)}, .html or .npz"
            raise UsageError(f"--attention {path}: expected a file name that ends in {kinds}")
    return {"--attention" + f" ({n})" * (n > 1): Path(path) for n, path in enumerate(paths, 1)}


def check_has_attention(translator: Translator, outputs: Mapping[str, str | Path | None]) -> None:
    """Raise UsageError if an option needs attention that the model does not have."""
    for option, path in outputs.items():
        if path is not None and not translator.has_attention:
            raise UsageError(f"{option} {path}: this run's model has no attention over source positions")


def open_attention_writers(
    stack: ExitStack, *, alignment: str | Path | None, attention: Iterable[Path]
) -> list[Writer]:
    """The writers for the requested links and attention maps. Closing the stack completes their files."""
    writers: list[Writer] = []
    if alignment is not None:
        writers.append(LineWriter(stack.enter_context(open_output(alignment)), _word_links))
    for path in attention:
        if _kind(path) == ".npz":
            file = stack.enter_context(open_output(path))
            writers.append(NpzWriter(stack.enter_context(zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED))))
        else:
            is_page = _kind(path) == ".html"
            drawing = PageWriter(path, MAX_PAGE_LINES) if is_page else HeatMapWriter(path, MAX_HEAT_MAPS)
            stack.enter_context(_saved(drawing))
            writers.append(drawing)
    return writers


def _kind(attention: str | Path) -> str:
    return Path(attention).suffix.lower()


@contextmanager
def _saved(drawing: PageWriter | HeatMapWriter) -> Iterator[None]:
    """Save unless an error ends the command."""
    yield
    drawing.save()


def _attention_map(number: int, translation: Translation) -> AttentionMap | None:
    """Weights with their labels; None for a line without attention."""
    if translation.attention is None:
        log.warning("line %d: too long for an attention matrix; left out", number + 1)
        return None
    return translation.attention_map() if translation.attention.size else None
