"""Other libraries open translated documents again: only their texts have changed."""

import csv
import io
import random
import re

import polib
import pytest
from markdown_it import MarkdownIt

from seq2seq_attn.api.documents import translate_document
from seq2seq_attn.text.documents.placeholders import has_words
from tests.documents import samples
from tests.documents.conftest import make_translator
from tests.documents.samples import SEEDS


def translated(line):
    return f'"Ü", {line}; x'


TRANSLATOR = make_translator(translated)


def expected(text):
    """The translation of each line, between its white space."""
    lines = []
    for line in re.split("([\r\n]+)", text):
        words = line.strip()
        lines.append(line.replace(words, translated(words), 1) if has_words(words) else line)
    return "".join(lines)


def translate(document, form, field=""):
    """The texts before and after a translation, and its messages."""
    new, messages = translate_document(TRANSLATOR, document, form, field=field)
    return document.decode("utf-8-sig"), new.decode("utf-8-sig"), messages


@pytest.mark.parametrize("seed", SEEDS)
def test_a_catalogue(seed):
    before, after, messages = translate(samples.make_po(random.Random(seed)), "po")
    assert messages == []
    for old, new in zip(polib.pofile(before), polib.pofile(after), strict=True):
        assert (old.msgctxt, old.msgid, old.msgid_plural) == (
            new.msgctxt,
            new.msgid,
            new.msgid_plural,
        )
        assert (old.comment, old.flags, old.obsolete) == (new.comment, new.flags, new.obsolete)
        forms = dict.fromkeys(old.msgstr_plural, expected(old.msgid_plural))
        if len(forms) == 2:
            forms[0] = expected(old.msgid)
        assert new.msgstr_plural == forms
        is_open = not (old.msgstr or forms or old.obsolete)
        assert new.msgstr == (expected(old.msgid) if is_open else old.msgstr)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_table(seed):
    before, after, messages = translate(samples.make_csv(random.Random(seed)), "csv", "text")
    assert messages == []
    mark = re.search("id(.)text", before)[1]
    is_plain = mark == "\t" and '"' not in before
    dialect = {"delimiter": mark, "quoting": csv.QUOTE_NONE if is_plain else csv.QUOTE_MINIMAL}
    rows = [csv.reader(io.StringIO(text, ""), **dialect) for text in (before, after)]
    is_body = False
    for old, new in zip(*rows, strict=True):
        if is_body and old:
            old[1] = expected(old[1])
        assert new == old
        is_body |= "text" in old


@pytest.mark.parametrize("seed", SEEDS)
def test_markdown(seed):
    before, after, messages = translate(samples.make_md(random.Random(seed)), "md")
    parser = MarkdownIt("commonmark").enable("table")
    num_unchanged = 0
    for old, new in zip(parser.parse(before), parser.parse(after), strict=True):
        assert (old.type, old.attrs, markup(old)) == (new.type, new.attrs, markup(new))
        if new.content != old.content:
            # Markup before or behind a text stays outside the translation.
            assert has_words(new.content.replace(old.content, ""))
            text = new.content.replace('"Ü", ', "").replace("; x", "")
            assert text == re.sub(r"(?<!  )\n", " ", old.content)
        elif old.content != "title: Hund":  # front matter
            texts = [part.content for part in old.children or () if part.type == "text"]
            num_unchanged += any(map(has_words, texts))
    assert num_unchanged == len(messages)


def markup(block):
    """The parts of a block that are not text."""
    parts = [(part.type, part.attrs, part.content) for part in block.children or ()]
    return [part for part in parts if part[0] not in ("text", "softbreak")]
