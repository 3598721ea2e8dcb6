"""Writers of `translate` and `score`: text, JSON, word links, attention maps.

Writers take lines one by one and keep none, except for heat maps and pages, which keep the first
few.
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
from seq2seq_attn.text.links import links_between_words, words_of
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.translate.attention_map import AttentionMap, pack_map
from seq2seq_attn.translate.figure import PLOT_SUFFIXES, write_figure
from seq2seq_attn.translate.translation import Translation
from seq2seq_attn.translate.translator import Translator

MAX_HEAT_MAPS = 20
"""lines in one picture"""
MAX_PAGE_LINES = 1_000
"""lines on one HTML page"""
_ALIGNMENT = "--alignment"

Writer = Callable[[int, str, list[Translation]], object]
"""takes a line's number (from 0), its text, and its translations, best first"""
LineForm = Callable[[int, str, list[Translation]], str]
"""the output line for the same"""

log = logging.getLogger(__name__)


def write_lines(
    writers: Sequence[Writer],
    lines: Sequence[str],
    translations: Iterable[list[Translation]],
    *,
    first: int = 0,
) -> None:
    """Pass each line with its translations to each writer. `first`: the number of the first
    line."""
    for number, (line, translated) in enumerate(zip(lines, translations, strict=True), first):
        for write in writers:
            write(number, line, translated)


def line_writer(out: BinaryIO, form: LineForm) -> Writer:
    """Writes to a stream. The reader of a pipe gets each line at once."""

    def write(number: int, line: str, translations: list[Translation]) -> None:
        out.write(f"{form(number, line, translations)}\n".encode())
        if not isinstance(out, GzipFile):  # which would compress each line by itself
            out.flush()

    return write


def line_form(format: str, n_best: int, *, with_weights: bool) -> LineForm:
    """The form of translations. `text`: the best one, or of several translations a line each as in
    Moses. `json`: an object with `line` (from 0), `source`, `text`, `score`, `log_prob`, `tokens`,
    `source_tokens`, `links` from source to target positions (null without attention), `unknown`
    (source positions) and `is_cut`; `with_weights`, also `weights`, a row per target token and a
    column per source token; with several translations also `n_best`, a list of the objects that
    differ."""

    def as_object(number: int, line: str, translations: list[Translation]) -> str:
        best = translations[0]
        values = {"line": number, "source": line, **_values(best, with_weights=with_weights)}
        values |= {"source_tokens": best.source_tokens, "unknown": best.unknown}
        if n_best > 1:
            values["n_best"] = [_values(each, with_weights=with_weights) for each in translations]
        return as_json(values)

    if format == "json":
        return as_object
    return _as_moses_lines if n_best > 1 else _as_text


def _values(translation: Translation, *, with_weights: bool) -> dict[str, object]:
    values: dict[str, object] = {
        "text": translation.text,
        "score": round(translation.score, 6),
        "log_prob": round(translation.log_prob, 6),
        "tokens": translation.tokens,
        "links": None if translation.heaviest is None else translation.links(),
        "is_cut": translation.is_cut,
    }
    if with_weights:
        weights_TS = translation.attention
        if weights_TS is not None:
            weights_TS = weights_TS.astype(float).round(4)
        values["weights"] = None if weights_TS is None else weights_TS.tolist()
    return values


def _as_moses_lines(number: int, line: str, translations: list[Translation]) -> str:
    rows = []
    for each in translations:
        rows.append(f"{number} ||| {each.text} ||| {each.log_prob:.6f} ||| {each.score:.6f}")
    return "\n".join(rows)


def _as_text(number: int, line: str, translations: list[Translation]) -> str:
    return translations[0].text


def as_json(values: Mapping[str, object]) -> str:
    """An object on one line; numbers that are not finite become null."""
    return json.dumps(finite(values), ensure_ascii=False)


def check_attention(translator: Translator, option: str, path: Path) -> None:
    """Raise UsageError if an option needs attention that the model does not have."""
    if not translator.has_attention:
        raise UsageError(
            f"{option} {path}: this run's model has no attention over source positions"
        )


def attention_outputs(alignment: Path | None, attention: Sequence[Path]) -> dict[str, Path]:
    """The files of links and attention, by option, with a number from the second on. Raises
    UsageError: a file's suffix is not one of a kind of attention file."""
    outputs: dict[str, Path] = {}
    if alignment is not None:
        outputs[_ALIGNMENT] = alignment
    for number, path in enumerate(attention, 1):
        if path.suffix.lower() not in (*PLOT_SUFFIXES, ".html", ".npz"):
            raise UsageError(
                f"--attention {path}: expected a name in {', '.join(PLOT_SUFFIXES)}, .html or .npz"
            )
        outputs["--attention" if number == 1 else f"--attention ({number})"] = path
    return outputs


def open_attention_writers(
    stack: ExitStack, translator: Translator, outputs: Mapping[str, Path]
) -> list[Writer]:
    """The writers for the `attention_outputs`. Closing the stack completes their files. Raises
    UsageError as `check_attention`."""
    writers: list[Writer] = []
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
    """Word links of the best translation by its attention, `source-target`. Words are separated by
    spaces and tabs and counted from 0; each vector of a source counts as a word."""

    def form(number: int, line: str, translations: list[Translation]) -> str:
        best = translations[0]
        tokens = best.source_tokens[:-1]
        target_words = words_of(best.text)
        try:
            words = source.words(line, tokens)
            links = links_between_words(best.links(), tokens, best.tokens, words, target_words)
        except ValueError:
            links = []
            log.warning("line %d: its tokens do not spell its words; no links written", number + 1)
        return " ".join(f"{start}-{end}" for start, end in links)

    return form


@contextmanager
def _npz_writer(path: Path) -> Iterator[Writer]:
    """Arrays `attention_I`, `source_tokens_I`, `target_tokens_I` of each line with a translation,
    written to the archive one by one (`numpy.savez` would hold them all in memory)."""
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
    """Keeps the first lines that have attention, and writes them at the end of the block, unless an
    error ends it: as an HTML page, or in one picture."""
    from seq2seq_attn.report.html import html_maps  # which imports all of the evaluation

    is_page = path.suffix.lower() == ".html"
    max_lines = MAX_PAGE_LINES if is_page else MAX_HEAT_MAPS
    drawn: list[tuple[int, str, str, AttentionMap]] = []
    is_full = False

    def write(number: int, line: str, translations: list[Translation]) -> None:
        nonlocal is_full
        attention = None if is_full else _attention_map(number, translations[0])
        if attention is None:
            return
        is_full = len(drawn) == max_lines
        if is_full:
            message = "%s: shows only the first %d lines; a .npz file holds them all"
            log.warning(message, path, max_lines)
            return
        drawn.append((number, line, translations[0].text, attention))

    yield write
    if not drawn:
        log.warning("%s: not written, no translation has any tokens", path)
        return
    with open_output(path) as out:
        if is_page:
            maps = [(number + 1, text, pack_map(each)) for number, _, text, each in drawn]
            out.write(html_maps(maps).encode())
            return
        from seq2seq_attn.translate.heat_maps import attention_figure

        attentions = [attention for *_, attention in drawn]
        titles = [line for _, line, *_ in drawn]
        write_figure(attention_figure(attentions, titles), out, path)


def _attention_map(number: int, translation: Translation) -> AttentionMap | None:
    """Weights with their labels; None for a line without attention."""
    if translation.attention is None:
        log.warning("line %d: too long for an attention matrix; left out", number + 1)
        return None
    return translation.attention_map() if translation.attention.size else None
