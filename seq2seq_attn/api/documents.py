"""Translate documents: their texts are translated, and all other characters stay as they are."""

import logging
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seq2seq_attn.api.streams import STREAM, open_output, shown_name
from seq2seq_attn.api.writers import Writer
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.documents.document import check_field, parse_document, replace_texts
from seq2seq_attn.text.documents.forms import FORMS
from seq2seq_attn.text.documents.kinds import Kind, kind_by_content, kind_by_suffix
from seq2seq_attn.text.lines import explain_unreadable, open_bytes, plain_name
from seq2seq_attn.translate.translator import Translator

LINES = "lines"
"""the form of an input with a text per line"""
_AUTO = "auto"
_TABLES = ("tsv", "tab")
"""suffixes of tables that a run with several sources reads as lines"""
_MAX_SHOWN = 10
"""Maximum number of texts that a warning quotes."""

log = logging.getLogger(__name__)


def translate_document(
    translator: Translator,
    document: bytes,
    form: str,
    *,
    field: str = "",
    record: Writer | None = None,
    **options: Any,
) -> tuple[bytes, list[str]]:
    """Translate the texts of a document. All other bytes stay as they are.

    Each line of a text is translated by itself. Returns the translated document, and a message for
    each text that stays untranslated, because its translation would lose a placeholder such as
    `%s`, a tag such as `<b>` or other markup.

    >>> document = '{"id": 7, "text": "Der Hund schläft."}'.encode()
    >>> translate_document(load("runs/quickstart"), document, "jsonl", field="text")
    (b'{"id": 7, "text": "The dog is sleeping."}', [])

    Args:
        document: the bytes of the document, in UTF-8, or in UTF-16 with a byte-order mark.
        form: the form of the document, by its suffix, such as `srt` or `po`.
        field: the field of JSON, or the column of a table, that is translated.
        record: a function that is called with the line number (from 0), the text and the
            translations of each text.
        options: options of `Translator.translate`.

    Raises:
        UsageError: the form is unknown, the field is not in the document, or the run has several
            sources or a source of vectors.
        UserError: the document is damaged, in languages that the run does not translate, or not
            text in UTF-8 or UTF-16.
    """
    parsed = parse_document(document, form, field, translator.languages)
    source = translator.source_tokenizer
    if source.num_columns != 1 or source.vector_size is not None:
        raise UsageError(f"{form}: expected a run that reads one text")
    options["n_best"] = 1
    texts = [line.text for line in parsed.lines]
    translated = translator.translate_lines(texts, **options)
    replacements = []
    for line, translations in zip(parsed.lines, translated, strict=True):
        best = translations[0]
        if record:
            record(parsed.line_number(line), line.text, translations)
        replacements.append(best.text if math.isfinite(best.log_prob) else "")
    return replace_texts(parsed, replacements)


def translate_file(
    translator: Translator, name: str, output: str, form: str, **options: Any
) -> None:
    """Translate the document in a file or on standard input, with options of `translate_document`.
    Write it to `output`, and log the texts that stay untranslated."""
    content = _read_document(name)
    try:
        new, messages = translate_document(translator, content, form, **options)
    except UserError as error:
        raise type(error)(f"{shown_name(name)}: {error}") from None
    with open_output(output) as out:
        out.write(new)
    if messages:
        warning = "%s: untranslated texts, whose placeholders or markup would be lost: %d; %s"
        log.warning(warning, shown_name(name), len(messages), "; ".join(messages[:_MAX_SHOWN]))


def _read_document(name: str) -> bytes:
    """Return the bytes of standard input, or the decompressed bytes of a file."""
    if name == STREAM:
        return sys.stdin.buffer.read()
    with open_bytes(Path(name)) as (stream, _), explain_unreadable(Path(name)):
        return stream.read()


def choose_form(
    names: Sequence[str],
    document: str,
    field: str,
    num_sources: int,
    not_for_documents: Mapping[str, object],
) -> str:
    """Return the form of the inputs.

    Args:
        names: names of the input files; empty for texts on the command line.
        document: the form that the user names, or `auto`.
        field: the field of the document that is translated, or an empty text.
        num_sources: number of sources of the run; several sources may be the columns of a table.
        not_for_documents: the values of options that do not apply to documents, by name. The value
            of an option that the user has not set is false.

    Raises:
        UsageError: a document is combined with such an option, or with other inputs.
        UserError: the suffix of a file is that of a document that cannot be read.
    """
    form = _form_by_suffix(names, num_sources) if document == _AUTO else document
    is_mixed = any(not_for_documents.values()) or len(names) != 1
    if form != LINES and is_mixed:
        raise UsageError(
            f"a document ({form}): give one -i FILE, without {', '.join(not_for_documents)}; "
            "--document lines translates its lines as they are"
        )
    check_field(form, field)
    return form


def _form_by_suffix(names: Sequence[str], num_sources: int) -> str:
    """Return the form that the suffix of the only input names, or lines. Raises UserError for the
    suffix of a document that cannot be read."""
    form = LINES
    for name in names:
        suffix = plain_name(Path(name)).lower().rpartition(".")[2]
        kind = kind_by_suffix(suffix)
        if num_sources > 1 and suffix in _TABLES:
            continue  # its columns are the sources
        if suffix in FORMS and len(names) == 1:
            form = suffix
        elif kind is not None:
            raise _not_lines(name, kind)
    return form


def check_content(name: str, head: str) -> None:
    """Raise UserError if the first lines of an input are those of a document."""
    kind = kind_by_content(head)
    if kind is not None:
        raise _not_lines(name, kind)


def _not_lines(name: str, kind: Kind) -> UserError:
    """Return the error for a document in place of lines of text."""
    return UserError(
        f"{shown_name(name)}: {kind.name}, not a sentence per line; name its form with --document "
        f"({', '.join(FORMS)}), write its text into a file of lines, or translate its lines as "
        "they are with --document lines"
    )
