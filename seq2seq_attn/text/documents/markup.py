"""XML and HTML: tags, and texts in which marks such as ⟦1⟧ stand for the tags."""

import html
import re
from collections.abc import Iterable, Iterator

_TAG = re.compile(
    r"""(?xis)
    <(?=(?:\?xml|meta)\b[^<>]*(?:encoding|charset)\s*=\s*["']?(?!utf)\w)
    | <!--.*?--> | <\?.*?\?> | <!\[CDATA\[.*?\]\]> | <!(?!--|\[CDATA|ENTITY)[^<>]*>
    | <(script|style|textarea|xmp|iframe)\b[^<>]*(?<!/)>.*?(?:</\1[^<>]*>|\Z)
    | <(?P<slash>/?)(?=[^\W\d])(?:[^\s:/<>]*:)?(?P<name>[^\s:/<>]*)
      (?:=\s*"[^"]*"|=\s*'[^']*'|[^<>])*+>
    | <(?=[!?/]|[^\W\d]) | &lt;/?[a-z](?:(?!&[lg]t;)[^<>])*+&gt; | \Z
    """
)
"""matches a tag, also in its escaped form (`&lt;b&gt;`), a comment, an element without text, and
the end of the document; matches `<` alone where an entity or an encoding other than UTF is
declared, and where a tag does not end"""
_IS_TRANSLATED = re.compile(
    r"""(?xi)
    \b(?:translate\s*=\s*["']?(yes|no)\b|mtype=["']protected|notranslate\b)
    |^<(?:[^\s:<>]*:)?(?:alt-trans|bpt|code|ept|it|kbd|math|ph|pre|samp|ut|var)[\s>]
    """
)
"""matches a start tag that says whether its element is translated; other elements than those with
`yes` are not translated"""
_IS_WHOLE = re.compile(
    r"(?is)&|<[!?/]|<(?:br|hr|img|input|link|meta|script|style|textarea|xmp|iframe|wbr)\b|.*/>$|$"
)
"""matches all but the start tag of an element"""
_MARK = re.compile(r"(?:(?<!\w) )?⟦\d+⟧(?: (?!\w))?")
"""matches the mark of a tag, and a space at its side unless a word is beyond"""
_NO_SPACE_BEFORE = re.compile(r"\s|</")
_NO_SPACE_AFTER = re.compile(r"(?:\s|<\w[^<>]*[^/<>]>|<\w>|\})$")
"""match markup at whose end a space is not added"""


def find_tags(document: str) -> Iterator[tuple[re.Match[str], str, bool, bool]]:
    """Yield each tag or comment of XML or HTML and the end of the document, with its name, whether
    the text before it is translated, and whether an element around it says so.

    A name is in lower case, without prefix, and begins with a slash in an end tag. The name of a
    comment is empty. Raises ValueError if a tag does not end, or if an entity or an encoding other
    than UTF is declared.
    """
    deciding = [("", True)]
    for tag in _TAG.finditer(document):
        if tag[0] == "<":
            line = document.count("\n", 0, tag.start()) + 1
            raise ValueError(f"a tag without an end, an entity or encoding declared: line {line}")
        name = tag.expand(r"\g<slash>\g<name>").lower()
        innermost, was_translated = deciding[-1]
        yield tag, name, was_translated, len(deciding) > 1
        if name == f"/{innermost}":
            deciding.pop()
        if _IS_WHOLE.match(tag[0]):
            continue
        attribute = _IS_TRANSLATED.search(tag[0])
        is_translated = attribute[1] == "yes" if attribute else was_translated
        if name == innermost or is_translated != was_translated:
            deciding.append((name, is_translated))


def split_markup(markup: str) -> list[str]:
    """Return the decoded texts of some markup, and the markup before, between and behind them."""
    pieces = []
    gap = ""
    position = 0
    for tag, _, is_translated, _ in find_tags(markup):
        raw = markup[position : tag.start()]
        text = html.unescape(raw)
        core = text.strip()
        if core and is_translated:
            before, raw = text.split(core, 1)
            pieces += [gap + before, core]
            gap = ""
        gap += raw + tag[0]
        position = tag.end()
    return [*pieces, gap]


def read_markup(markup: str, keeps_space: bool = False) -> str:
    """Return the text of some markup, without the tags and spaces at its ends."""
    return join_texts(split_markup(markup)[1::2], keeps_space)


def join_texts(texts: Iterable[str], keeps_space: bool = False) -> str:
    """Return texts with marks between them. White space becomes a space, unless it is kept."""
    numbered = [f"⟦{number}⟧ {text}" for number, text in enumerate(texts)]
    text = " ".join(numbered).removeprefix("⟦0⟧ ")
    return text if keeps_space else " ".join(text.split())


def fill_marks(text: str, gaps: Iterable[str]) -> str:
    """Return a text with markup in place of its marks, and before and behind it. Raises ValueError
    if it has more or fewer marks."""
    new = ""
    for gap, piece in zip(gaps, [*_MARK.split(text), ""], strict=True):
        if _NO_SPACE_BEFORE.match(gap):
            new = new.rstrip()
        if _NO_SPACE_AFTER.search(gap):
            piece = piece.lstrip()
        new += gap + piece
    return new


def encode(translation: str, original: str) -> str:
    """Return a translation with the tags of the original. Raises ValueError if the original has
    characters that look like the mark of a tag."""
    if translation == read_markup(original):
        return original
    return fill_marks(html.escape(translation, quote=False), split_markup(original)[::2])
