"""XLIFF 1.2 and 2, and TMX: units of a source, and of a target that is the translation."""

import html
import re
from collections.abc import Iterator
from xml.parsers.expat import ParserCreate

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.documents.base import Text
from seq2seq_attn.text.documents.markup import encode as encode
from seq2seq_attn.text.documents.markup import find_tags, read_markup
from seq2seq_attn.text.languages import short_code

LANGUAGE = re.compile(
    r"""\s([st])(?:ource-language|rcLang|arget-language|rgLang)\s*=\s*["']([\w-]+)"""
)
"""matches a language of XLIFF; the first group is `s` for the source, or `t` for the target"""
_SOURCE = re.compile(rb"""\s(?:source-language|src[Ll]ang)\s*=\s*["']([A-Za-z][\w-]*)""")
_VARIANT = re.compile(r"""(?s).*?\s(?:xml:)?lang\s*=\s*["']([\w-]+).*""")
_KEEPS_SPACE = re.compile(r"""<tmx\b|\sxml:space\s*=\s*["']preserve""")
"""is found in documents whose white space is kept"""
_UNITS = "trans-unit segment tu".split()
_NO_TRANSLATION = re.compile(
    r"""(?s)\A<[^>]*\sstate\s*=\s*["'](?:new|needs-translation)\b.*|<[^!][^>]*>"""
)
"""matches tags, and a whole target whose state says that it is not translated"""
_CDATA = re.compile(r"(?s)<!\[CDATA\[(.*?)\]\]>")
Unit = dict[str, re.Match[str]]
"""the first tag of each name in a unit, outside elements that are not translated"""


def find_texts(document: str, languages: str) -> Iterator[Text]:
    """Yield the texts of the units that have no translation.

    A `seg` of TMX is read as the `source` or `target` of XLIFF, by the language of the `tuv` around
    the `seg`.

    Raises:
        ExpatError: the document is not well-formed.
        ValueError: the document has declarations that are refused.
        UserError: the languages of the document are not those of the run.
    """
    tags = list(find_tags(document))  # refuses entities before the parser expands them
    ParserCreate(namespace_separator=" ").Parse(document, True)
    source, target = map(short_code, languages.split())
    sides = {source: "source", target: "target"}
    # The initial of an attribute that names a language is the initial of the side.
    for initial, code in LANGUAGE.findall(document):
        if not sides.get(short_code(code), "").startswith(initial):
            raise UserError(f"language {code}: the run translates {source} to {target}")
    side = "seg"  # stays in XLIFF, which has no `tuv`
    unit: Unit = {}
    keeps_space = _KEEPS_SPACE.search(document) is not None
    has_source = False
    for tag, full_name, is_translated, _ in tags:
        name = full_name.replace("seg", side)
        if name == "tuv":
            side = sides.get(short_code(_VARIANT.sub(r"\1", tag[0])), "")
        if name in _UNITS:
            unit = {}
        elif name[1:] in _UNITS:  # the end tag of a unit
            yield from _find_text(document, unit, target, keeps_space)
        if name == "source":
            has_source = True
        if is_translated:
            unit.setdefault(name, tag)
    if not has_source:
        raise UserError(f"no unit in {source}: the run translates {source} to {target}")


def source_language(document: bytes) -> str:
    """Return the source language that a document names. Raises UserError if the document names no
    source language."""
    named = _SOURCE.search(document.replace(b"\0", b""))  # without the zeros of UTF-16
    if named is None:
        raise UserError("source: the document names no language; name it in place of auto")
    return short_code(named[1].decode())


def _find_text(document: str, unit: Unit, language: str, keeps_space: bool) -> Iterator[Text]:
    """Yield the text of a unit that has a source and no translation. Its translation is put into
    the empty target of the unit, or into a new target."""
    if "/source" not in unit:
        return
    end = unit["/source"]
    content = document[unit["source"].end() : end.start()]
    original = _CDATA.sub(lambda match: html.escape(match[1]), content)
    after = end[0].replace("source", "target")
    before = after.replace("/", "")
    target = unit.get("target")
    if target:
        closing = unit.get("/target", target)  # <target/> has no other tag
        if _NO_TRANSLATION.sub("", document[target.start() : closing.start()]).strip():
            return
        start = target.start()
        stop = closing.end()
        before = target[0].rstrip("/>") + ">"
    else:
        start = stop = unit.get("/seg-source", unit.get("/tuv", end)).end()
        if "tuv" in unit:
            before = f'<tuv xml:lang="{language}">{before}'
            after += "</tuv>"
    yield Text(start, stop, read_markup(original, keeps_space), None, before, after, original)
