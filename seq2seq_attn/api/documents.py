"""Translate the texts of a document, and leave all its other characters as they are."""

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
"""the form of an input that is not a document: each line is a text"""
_AUTO = "auto"
_TABLES = ("tsv", "tab")
"""suffixes of tables that a run with several sources reads as lines"""
_MAX_SHOWN = 10
"""maximum number of texts that a warning quotes"""

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

    A text has one line or several lines, and each line is translated by itself. Returns the
    translated document, and a message for each text that stays untranslated, because a line has no
    translation, or because the translation would lose a placeholder such as `%s`, a tag such as
    `<b>` or other markup.

    >>> document = '{"id": 7, "text": "Der Hund schläft."}'.encode()
    >>> translate_document(load("runs/quickstart"), document, "jsonl", field="text")
    (b'{"id": 7, "text": "The dog is sleeping."}', [])

    Args:
        document: the bytes of the document, in UTF-8, or in UTF-16 with a byte-order mark.
        form: the form of the document, by its suffix, such as `srt` or `po`.
        field: the field of JSON, or the column of a table, that is translated.
        record: a function that is called for each translated line with its number in the document
            (from 0), the line and the translations of the line.
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
        # `replace_texts` keeps a text if the replacement of a line is empty.
        replacements.append(best.text if math.isfinite(best.log_prob) else "")
    return replace_texts(parsed, replacements)


def translate_file(
    translator: Translator, name: str, output: str, form: str, **options: Any
) -> None:
    """Translate the document `name`, a file or standard input, and write the translated document to
    `output`. Warn of the texts that stay untranslated.

    The options are those of `translate_document`, and so are the errors. An error begins with the
    name of the document.
    """
    content = _read_document(name)
    try:
        new, messages = translate_document(translator, content, form, **options)
    except UserError as error:
        raise type(error)(f"{shown_name(name)}: {error}") from None
    with open_output(output) as out:
        out.write(new)
    if messages:
        warning = "%s: untranslated texts, whose placeholders or markup would be lost: %d; %s"
        quoted = "; ".join(messages[:_MAX_SHOWN])
        log.warning(warning, shown_name(name), len(messages), quoted)


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
    """Return the form of the input: `lines`, or the form of a document.

    Args:
        names: names of the input files; empty for texts on the command line.
        document: the form that the user names, or `auto`.
        field: the field of the document that is translated, or an empty text.
        num_sources: number of sources of the run; several sources may be the columns of a table.
        not_for_documents: the values of options that do not apply to documents, by name. The value
            of an option that the user has not set is false.

    Raises:
        UsageError: a document is combined with an option in `not_for_documents` or with another
            input; or the field does not suit the form.
        UserError: the suffix of a file is that of a document whose form is unknown, or there are
            several files and one is a document.
    """
    form = _form_by_suffix(names, num_sources) if document == _AUTO else document
    if form != LINES and (len(names) != 1 or any(not_for_documents.values())):
        raise UsageError(
            f"a document ({form}): give one -i FILE, without {', '.join(not_for_documents)}; "
            "--document lines translates its lines as they are"
        )
    check_field(form, field)
    return form


def _form_by_suffix(names: Sequence[str], num_sources: int) -> str:
    """Return the form that the suffix of a single input names, or `lines` if all inputs are lines.

    Raises:
        UserError: the suffix of a file is that of a document whose form is unknown, or there are
            several files and one is a document.
    """
    for name in names:
        suffix = plain_name(Path(name)).lower().rpartition(".")[2]
        if num_sources > 1 and suffix in _TABLES:
            continue  # the columns of the table are the sources
        if len(names) == 1 and suffix in FORMS:
            return suffix
        kind = kind_by_suffix(suffix)
        if kind is not None:
            raise _not_lines(name, kind)
    return LINES


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
