"""HTML and XHTML: the texts between the tags of blocks."""

import logging
from collections import defaultdict
from collections.abc import Iterator

from seq2seq_attn.text.documents.base import Text
from seq2seq_attn.text.documents.markup import encode as encode
from seq2seq_attn.text.documents.markup import find_tags, read_markup

_INLINE = """
a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd mark q rp rt ruby s samp
small span strike strong sub sup time tt u var wbr
""".split()


_WITHOUT_END = """
area base body br caption col colgroup dd dt embed frame head hr html img input keygen li link meta
optgroup option p param rb rp rt rtc source tbody td tfoot th thead tr track wbr
""".split()
"""elements that need no end tag in HTML"""

log = logging.getLogger(__name__)


def find_texts(document: str, languages: str) -> Iterator[Text]:
    """Yield the texts of a page. Tags within a sentence, such as `<b>`, belong to its text.

    Warn once for each name of elements that lack the end tag that HTML requires. Browsers repair
    them.

    Raises ValueError if a declaration is refused, if a tag does not end, or if an element that is
    not translated has no end tag.
    """
    start = 0
    open_tags: dict[str, list[int]] = defaultdict(list)
    for tag, name, _, is_inside in find_tags(document):
        if name.startswith("/"):
            del open_tags[name[1:]][-1:]  # nothing if no such element is open
        elif name not in _WITHOUT_END and not tag[0].endswith("/>"):
            open_tags[name].append(tag.start())
        is_in_text = is_inside or not name or name.removeprefix("/") in _INLINE
        if tag[0] and is_in_text:  # tag[0] is empty at the end
            continue
        yield Text(start, tag.start(), read_markup(document[start : tag.start()]))
        start = tag.start()
    if is_inside:  # at the end of the document
        raise ValueError("an element that is not translated does not end")
    for name, positions in open_tags.items():
        if name and positions:
            line = document.count("\n", 0, positions[0]) + 1
            log.warning("line %d: <%s> has no end tag; check the text after it", line, name)
