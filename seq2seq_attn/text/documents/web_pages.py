"""HTML and XHTML: the texts between the tags of blocks."""

from collections.abc import Iterator

from seq2seq_attn.text.documents.base import Form, Text
from seq2seq_attn.text.documents.markup import encode, find_tags, read_markup

_INLINE = """
a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd mark q rp rt ruby s samp
small span strike strong sub sup time tt u var wbr
""".split()


def find_texts(document: str, languages: str) -> Iterator[Text]:
    """Yield the texts of a page. Tags within a sentence, such as `<b>`, belong to its text.

    Raises ValueError if the page has declarations that are refused, or if a tag or an element that
    is not translated does not end.
    """
    start = 0
    for tag, name, _, is_inside in find_tags(document):
        is_inline = is_inside or not name or name.strip("/") in _INLINE
        if tag[0] and is_inline:
            continue
        yield Text(start, tag.start(), read_markup(document[start : tag.start()]))
        start = tag.start()
    if is_inside:  # at the end of the document
        raise ValueError("an element that is not translated does not end")


FORM = Form(find_texts, encode)
