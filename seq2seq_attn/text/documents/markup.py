"""XML and HTML: tags, and texts in which marks such as ⟦1⟧ stand for the tags."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence

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
"""is found in a start tag that says whether the element is translated. Only `translate="yes"` says
that the element is"""
_IS_WHOLE = re.compile(
    r"(?is)&|<[!?/]|<(?:br|hr|img|input|link|meta|script|style|textarea|xmp|iframe|wbr)\b|.*/>$|$"
)
"""matches all tags but the start tag of an element that needs an end tag"""
_MARK = re.compile(r"(?:(?<!\w) )?⟦\d+⟧(?: (?!\w))?")
"""matches the mark of a tag, with a space beside the mark unless a word is beyond the space"""
_BEGINS = re.compile(r"(?:<\w[^<>]*[^/<>]>|<\w>|\})$")
"""matches markup whose last tag begins an element: no space is added behind it"""
_SPACE = re.compile(r"(?:\A|>)[\s\0]|\s\Z")
"""matches white space of markup outside its tags"""
_INLINE = re.compile(r"(?i)(?:<(?!br|hr|img|input|wbr)[^<>]*(?<!/)>|\{\\[^{}]*\})+")
"""matches tags that do not separate words"""


def find_tags(document: str) -> Iterator[tuple[re.Match[str], str, bool, bool]]:
    """Yield four values for each tag or comment of XML or HTML, and for the end of the document:

    - the match of the tag;
    - the name in lower case, without prefix. The name of an end tag begins with a slash, and the
      name of a comment is empty;
    - whether the text before the tag is translated;
    - whether an element around the tag says whether text is translated.

    Raises ValueError if a tag does not end, or if an entity or an encoding other than UTF is
    declared.
    """
    # The open elements that say whether text is translated.
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
        # An inner element with the name of the innermost deciding element is stacked too, so that
        # its end tag does not end the outer element.
        if name == innermost or is_translated != was_translated:
            deciding.append((name, is_translated))


def split_markup(markup: str) -> list[str]:
    """Return pieces of markup and decoded texts in turn. The first and the last item are markup."""
    pieces = []
    gap = ""  # the markup and untranslated text since the last text
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
    """Return the text of some markup, with marks in place of the tags between words."""
    return join_texts(split_markup(markup)[1:-1], keeps_space)


def join_texts(pieces: Sequence[str], keeps_space: bool = False) -> str:
    """Join texts by marks. A mark has a space on both sides, as in `a ⟦1⟧ b`, unless the word goes
    on behind the markup, or punctuation follows. Unless `keeps_space`, all white space becomes
    single spaces.

    Args:
        pieces: a text, then markup, then a text, and so on.
    """
    text = "".join(pieces[:1])
    for number, (gap, piece) in enumerate(zip(pieces[1::2], pieces[2::2], strict=True), 1):
        goes_on = _INLINE.fullmatch(html.unescape(gap)) and not _is_note(text, piece)
        text += f"⟦{number}⟧{piece}" if goes_on else f" ⟦{number}⟧ {piece}"
    return text if keeps_space else " ".join(text.split())


def _is_note(text: str, following: str) -> bool:
    """Return whether a digit is beside a letter or digit where two texts meet, as in the footnote
    `word<sup>1</sup>`."""
    border = text[-1:] + following[:1]
    return border.isalnum() and not border.isalpha()


def fill_marks(text: str, gaps: Iterable[str]) -> str:
    """Return a text with markup in place of the marks. `gaps` are the markup before the text, for
    each mark, and behind the text. Raises ValueError if the text has more or fewer marks."""
    new = ""
    for gap, piece in zip(gaps, [*_MARK.split(text), ""], strict=True):
        is_apart = _SPACE.search(gap) or _is_note(new.rstrip(), piece.lstrip())
        begins = _BEGINS.search(gap)
        if is_apart or not begins:
            new = new.rstrip()
        if is_apart or begins:
            piece = piece.lstrip()
        new += gap + piece
    return new


def encode(translation: str, original: str) -> str:
    """Return a translation with the tags of the original in place of the marks. Raises ValueError
    if the translation has more or fewer marks than needed, for example because the original has
    characters that look like a mark."""
    if translation == read_markup(original):
        return original
    return fill_marks(html.escape(translation, quote=False), split_markup(original)[::2])
