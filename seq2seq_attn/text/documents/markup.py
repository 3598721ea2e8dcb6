"""XML and HTML: tags, and texts in which marks such as ⟦1⟧ stand for the tags.

For example, `split_markup` divides `<p>A <b>small</b> dog.</p>` into pieces of markup and texts:

    "<p>"  "A"  " <b>"  "small"  "</b> "  "dog."  "</p>"

`read_markup` joins the texts into the line that is translated, with a mark for each piece of markup
between two texts. `encode` puts the markup in place of the marks of the translation:

    A ⟦1⟧ small ⟦2⟧ dog.
    Ein ⟦1⟧ kleiner ⟦2⟧ Hund.
    <p>Ein <b>kleiner</b> Hund.</p>
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

_TAG = re.compile(
    r"""(?xis)
    # "<" of a declaration of an encoding other than UTF
    <(?=(?:\?xml|meta)\b[^<>]*(?:encoding|charset)\s*=\s*["']?(?!utf)\w)
    # a comment, a processing instruction, CDATA, or a declaration other than of an entity
    | <!--.*?--> | <\?.*?\?> | <!\[CDATA\[.*?\]\]> | <!(?!--|\[CDATA|ENTITY)[^<>]*>
    # an element without text for translation, with its content
    | <(script|style|textarea|xmp|iframe)\b[^<>]*(?<!/)>.*?(?:</\1[^<>]*>|\Z)
    # a start tag or an end tag: slash, prefix, name, attributes. A quoted value may contain ">" if
    # a space, the end of the tag or another attribute follows: otherwise its quotation mark is
    # that of another tag.
    | <(?P<slash>/?)(?=[^\W\d])(?:[^\s:/<>]*:)?(?P<name>[^\s:/<>]+)
      (?:=\s*(?:"[^"<>]*"|'[^'<>]*'|(?:"[^"]*"|'[^']*')(?=[\s/>]|[\w-]+=))|(?!=\s*["'])[^<>])*+>
    # "<" of a tag that does not end, or of a declaration of an entity
    | <(?=[!?/]|[^\W\d])
    # an escaped tag, such as "&lt;b&gt;"
    | &lt;/?[a-z](?:(?!&[lg]t;)[^<>])*+&gt;
    # the end of the document
    | \Z
    """
)
"""matches a tag or a comment, the end of the document, and `<` alone at each error that `find_tags`
reports"""
_IS_TRANSLATED = re.compile(
    r"""(?xi)
    \s(?:(?:its:)?translate\s*=\s*["']?(yes|no)\b|mtype=["']protected
        |class\s*=\s*(?:["'][^"']*?)?(?<![\w-])notranslate(?![\w-]))
    |^<(?:[^\s:<>]*:)?(?:alt-trans|bpt|code|ept|it|kbd|math|ph|pre|samp|ut|var)[\s>]
    """
)
"""finds the attribute or the name by which a start tag says whether the element is translated: the
element is translated if group 1 is `yes`, and not translated otherwise"""
_IS_WHOLE = re.compile(
    r"(?is)&|<[!?/]|<(?:br|hr|img|input|link|meta|script|style|textarea|xmp|iframe|wbr)\b|.*/>$|$"
)
"""matches what `_TAG` matches, but for the start tags of elements whose end tag comes later. It
matches escaped tags, comments, end tags, and elements without an end tag or without text."""
MARK = re.compile(r"(?:(?<!\w) )?⟦\d+⟧(?: (?!\w))?")
"""matches a mark, with the space on each side unless a word is beyond that space"""
_BEGINS = re.compile(r"(?:<\w[^<>]*[^/<>]>|<\w>|\})$")
"""matches markup that ends in a start tag, or in a code of subtitles such as `{\\i1}`"""
_SPACE = re.compile(r"(?:\A|>)[\s\0]|\s\Z")
"""finds white space outside tags. In subtitles, NUL stands for a space between two tags
(`subtitles.py`)."""
_INLINE = re.compile(r"(?i)(?:<(?!br|hr|img|input|wbr)[^<>]*(?<!/)>|\{\\[^{}]*\})+")
"""matches tags that may stand inside a word, without white space beside the tags"""


def find_tags(document: str) -> Iterator[tuple[re.Match[str], str, bool, bool]]:
    """Yield four values for each tag or comment of XML or HTML, and for the end of the document:

    - the match of the tag;
    - the name in lower case, without prefix. The name of an end tag begins with a slash, and the
      name of a comment is empty;
    - True if the text before the tag is translated;
    - True from behind the start tag of an element that is not translated to its end tag, even in
      an inner element that is translated.

    Raises ValueError if a tag does not end, or if an entity or an encoding other than UTF is
    declared.
    """
    # The open elements that switch translation on or off. The first entry is the document.
    deciding = [("", True)]
    for tag in _TAG.finditer(document):
        if tag[0] == "<":
            line = document.count("\n", 0, tag.start()) + 1
            raise ValueError(
                f"line {line}: a tag or quote without end, or a declared entity or encoding"
            )
        name = tag.expand(r"\g<slash>\g<name>").lower()
        innermost, was_translated = deciding[-1]
        yield tag, name, was_translated, len(deciding) > 1
        if name == f"/{innermost}":
            deciding.pop()
        if _IS_WHOLE.match(tag[0]):
            continue
        attribute = _IS_TRANSLATED.search(tag[0])
        is_translated = attribute[1] == "yes" if attribute else was_translated
        # Another element that changes nothing is stacked only if its name is that of the innermost
        # deciding element: otherwise its end tag would end the deciding element.
        if name == innermost or is_translated != was_translated:
            deciding.append((name, is_translated))


def split_markup(markup: str) -> list[str]:
    """Return pieces of markup and decoded texts in turn, as `split_texts` does. Untranslated text
    counts as markup."""
    return split_texts(
        markup, ((tag, done) for tag, _, done, _ in find_tags(markup)), html.unescape
    )


def split_texts(
    markup: str, tags: Iterable[tuple[re.Match[str], object]], decode: Callable[[str], str] = str
) -> list[str]:
    """Return pieces of markup and decoded texts in turn. The first and the last item are markup.
    White space around a text counts as markup.

    Args:
        markup: texts with tags.
        tags: each tag, and whether the text before the tag is translated. The last tag is the end.
        decode: decodes a text.
    """
    pieces = []
    gap = ""  # the markup since the last text
    position = 0
    for tag, is_translated in tags:
        raw = markup[position : tag.start()]
        text = decode(raw)
        core = text.strip()
        if core and is_translated:
            before, after = text.split(core, 1)
            pieces += [gap + before, core]
            gap = after
        else:
            gap += raw
        gap += tag[0]
        position = tag.end()
    return [*pieces, gap]


def read_markup(markup: str, keeps_space: bool = False) -> str:
    """Return the texts of a piece of XML or HTML as one line, joined by marks (`join_texts`)."""
    return join_texts(split_markup(markup)[1:-1], keeps_space)


def join_texts(pieces: Sequence[str], keeps_space: bool = False) -> str:
    """Join texts by marks. A mark has a space on both sides, as in `a ⟦1⟧ b`, unless the markup
    consists of tags that may stand inside a word, as in `un⟦1⟧do`. At the number of a footnote, a
    mark always has these spaces. Unless `keeps_space`, all white space becomes single spaces.

    Args:
        pieces: a text, then markup, then a text, and so on.
    """
    text = "".join(pieces[:1])
    for number, (gap, piece) in enumerate(zip(pieces[1::2], pieces[2::2], strict=True), 1):
        is_inline = _INLINE.fullmatch(html.unescape(gap)) and not _is_note(text, piece)
        space = "" if is_inline else " "
        text += f"{space}⟦{number}⟧{space}{piece}"
    return text if keeps_space else " ".join(text.split())


def _is_note(text: str, following: str) -> bool:
    """Return whether a digit is beside a letter or another digit where two texts meet, as at the
    number of the footnote in `word<sup>1</sup>`."""
    border = text[-1:] + following[:1]
    return border.isalnum() and not border.isalpha()


def fill_marks(text: str, gaps: Iterable[str]) -> str:
    """Return a text with markup in place of the marks. `gaps` has the markup before the text, the
    markup for each mark, and the markup behind the text. Raises ValueError if `gaps` does not have
    two items more than the text has marks."""
    new = ""
    for gap, piece in zip(gaps, [*MARK.split(text), ""], strict=True):
        # Spaces beside a mark are removed where the markup has white space, and at a footnote.
        # Otherwise only the space inside an element is removed.
        removes_both = _SPACE.search(gap) or _is_note(new.rstrip(), piece.lstrip())
        is_start = _BEGINS.search(gap)
        if removes_both or not is_start:
            new = new.rstrip()
        if removes_both or is_start:
            piece = piece.lstrip()
        new += gap + piece
    return new


def encode(translation: str, original: str) -> str:
    """Return a translation with the tags of the original in place of the marks. Raises ValueError
    if the translation has more or fewer marks than needed, for example because the original has
    characters that look like a mark."""
    # A text that stays the same keeps its entities and white space.
    if translation == read_markup(original):
        return original
    gaps = split_markup(original)[::2]
    return fill_marks(html.escape(translation, quote=False), gaps)
