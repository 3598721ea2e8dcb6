"""XML and HTML: other libraries read the same document, but for the texts."""

import random
from contextlib import suppress
from copy import deepcopy

import pytest
from lxml import etree

from seq2seq_attn.api.documents import translate_document
from seq2seq_attn.errors import UserError
from tests.documents import markup_samples
from tests.documents.conftest import make_translator
from tests.documents.samples import SEEDS

LANG = "{http://www.w3.org/XML/1998/namespace}lang"
FORMS = ("html", "xlf", "xliff", "tmx")


@pytest.fixture
def dog():
    return make_translator(lambda line: line.replace("Hund", "dog &"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", SEEDS)
def test_another_library_reads_the_same_but_for_the_texts(form, seed, dog):
    document = getattr(markup_samples, f"make_{form}")(random.Random(seed))
    translated, messages = translate_document(dog, document, form)
    assert messages == []
    assert translated[:3] == document[:3]
    line_break = "\r\n".encode("utf-16-le" if document[:2] == b"\xff\xfe" else "utf-8")
    assert (line_break in translated) == (line_break in document)
    tree = parse(document, form)
    translate_tree(tree, form)
    assert outline(parse(translated, form)) == outline(tree)


@pytest.mark.parametrize("seed", range(12))
def test_an_unchanged_translation_is_the_same_page(seed, unchanged):
    document = markup_samples.make_html(random.Random(seed))
    assert translate_document(unchanged, document, "html") == (document, [])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>a <b>b</b>, c<br>d</p>", "<p>A <b>B</b>, C<br>D</p>"),
        ("<p>a</b:>b</p>", "<p>A</b:>B</p>"),  # a prefix without a name
        ("<p title='a'>a <i\n>b</i >, c", "<p title='a'>A <i\n>B</i >, C"),
        ("<pre>a</pre>b <code>c<br>d</code> e", "<pre>a</pre>B <code>c<br>d</code> E"),
        (
            "<div translate=no>a<p translate=yes>b</p> c</div> d",
            "<div translate=no>a<p translate=yes>B</p> c</div> D",
        ),
        ("<a class=notranslate>a</a>b &lt;3", "<a class=notranslate>a</a>B &lt;3"),
        (
            "<a class=a-notranslate href='?translate=no'>b",
            "<a class=a-notranslate href='?translate=no'>B",
        ),
        ("<p>&auml; &#98; c & d", "<p>Ä B C &amp; D"),
        ("a <![CDATA[b]]> c", "A <![CDATA[b]]> C"),
        ("a &lt;b id=&quot;c&quot;&gt; d", "A &lt;b id=&quot;c&quot;&gt; D"),
        ("a <![endif]>b <?php 'a > b' ?> c", "A <![endif]>B <?php 'a > b' ?> C"),
        ("<p/>a <code/> b<br/>c", "<p/>A <code/> B<br/>C"),
        ("un<b>believ</b>able (<b>b</b>)", "UN<b>BELIEV</b>ABLE (<b>B</b>)"),
        ("H<sub>2</sub>O dog<sup>1</sup> a<img> b", "H<sub>2</sub>O DOG<sup>1</sup> A<img> B"),
        ("<input value=a>b <img translate=no> c", "<input value=a>B <img translate=no> C"),
    ],
)
def test_only_the_texts_of_a_page_are_translated(source, expected, upper):
    assert translate_document(upper, source.encode(), "html") == (expected.encode(), [])


@pytest.mark.parametrize(
    ("source", "expected", "num_warnings"),
    [
        ("<p>a\n<b>b <i>c</i>", "<p>A\n<b>B <i>C</i>", 1),
        ("<b>a</b></b>\n<b>b", "<b>A</b></b>\n<b>B", 1),
        ("<ul><li>a<li>b</ul><p>c<p>d<br>", "<ul><li>A<li>B</ul><p>C<p>D<br>", 0),
        ('<a b="c"d="<e>" f=g\'s>a</a>', '<a b="c"d="<e>" f=g\'s>A</a>', 0),
        ('<a b="{% c "d" %}">a</a>', '<a b="{% c "d" %}">A</a>', 0),
        ("<script><b></script><svg><g/></svg>c", "<script><b></script><svg><g/></svg>C", 0),
    ],
)
def test_elements_without_an_end_tag_have_a_warning(source, expected, num_warnings, upper, caplog):
    translated = translate_document(upper, source.encode(), "html")
    assert translated == (expected.encode(), [])
    assert len(caplog.messages) == num_warnings
    assert all("line 2" in message and "<b>" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("source", "inserted"),
    [
        ("<s:source>a <s:ph>b</s:ph>, c</s:source>", "<s:target>A <s:ph>b</s:ph>, C</s:target>"),
        ("<s:source> <s:g>a</s:g>\n</s:source>", "<s:target> <s:g>A</s:g>\n</s:target>"),
        ("<s:source>1</s:source>", "<s:target>1</s:target>"),
        ("<s:source> </s:source>", ""),
        ("<s:source/>", ""),
    ],
)
def test_a_target_is_put_behind_a_source(source, inserted, upper):
    document = '<s:xliff xmlns:s="x"><s:source>a</s:source><s:segment>%s</s:segment></s:xliff>'
    translated, _ = translate_document(upper, (document % source).encode(), "xlf")
    assert translated.decode() == document % (source + inserted)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            "<xliff xml:space='preserve'><segment><source>%s</source></segment></xliff>",
            " A\n  B\n\nC\n",
        ),
        (
            "<xliff><segment><source xml:space='preserve'>%s</source></segment></xliff>",
            " A\n  B\n\nC\n",
        ),
        ("<xliff xml:space='default'><segment><source>%s</source></segment></xliff>", " A B C\n"),
        ("<tmx><tu><tuv lang='de'><seg>%s</seg></tuv></tu></tmx>", " A\n  B\n\nC\n"),
    ],
)
def test_lines_of_a_segment_that_keeps_white_space_stay_lines(document, expected, upper):
    source = document % " a\n  b\n\nc\n"
    translated, messages = translate_document(upper, f"<a>{source}</a>".encode(), "xlf")
    assert expected in translated.decode()
    assert messages == []


@pytest.mark.parametrize(
    ("translation", "expected"),
    [
        ("A ⟦1⟧ dog ⟦2⟧!", "A <b>dog</b>!"),
        ("A dog ⟦1⟧ ⟦2⟧ barks.", "A dog <b></b> barks."),
        ("⟦1⟧ A ⟦2⟧ dog", "<b>A</b> dog"),
        ("A ⟦1⟧ dog", None),
        ("A ⟦2⟧ dog ⟦1⟧.", None),
    ],
)
def test_tags_go_where_the_translation_has_their_marks(translation, expected):
    source = "犬<b>犬</b>."
    translated, messages = translate_document(
        make_translator(lambda line: translation), source.encode(), "html"
    )
    assert translated.decode() == (expected or source)
    assert len(messages) == (expected is None)


@pytest.mark.parametrize("form", ["html", "xlf"])
def test_characters_that_look_like_the_mark_of_a_tag_stay(form, upper):
    unit = "<p><trans-unit><source>⟦1⟧ a</source><target/></trans-unit></p>".encode()
    translated, messages = translate_document(upper, unit, form)
    assert translated == unit
    assert len(messages) == 1


@pytest.mark.parametrize(
    ("form", "source", "message"),
    [
        ("html", "<p>\n<a b", "line 2"),
        ("html", "\n<!-- a", "line 2"),
        ("html", '<p>\n<a b="c>d</a>', "line 2"),
        ("html", '<p>\n<a b="c>d</a> <a b="e">f</a>', "line 2"),
        ("html", "<pre>a", "does not end"),
        ("html", "<meta charset='iso-8859-1'>", "encoding"),
        ("html", '<!DOCTYPE html [\n<!ENTITY a "b">]>', "entity"),
        ("xlf", "<xliff>\n<b></xliff>", "line 2"),
        ("xlf", "<xliff>\n&a;</xliff>", "line 2"),
        ("xlf", "<x:a/>", "line 1"),
        ("xlf", "<?xml version='1.0' encoding='latin1'?><a/>", "encoding"),
        ("tmx", '<!DOCTYPE a SYSTEM "<>" [<!ENTITY a "b"> ]><a/>', "entity"),
        ("xlf", '<file source-language="fr"/>', "fr"),
        ("xliff", '<xliff srcLang="de" trgLang="de"/>', "de"),
        ("xliff", "<xliff/>", "de"),
        ("tmx", '<tu><tuv xml:lang="fr"><seg>a</seg></tuv></tu>', "de"),
    ],
)
def test_damage_and_other_languages_are_refused(form, source, message, upper):
    with pytest.raises(UserError, match=message):
        translate_document(upper, source.encode(), form)


@pytest.mark.parametrize(
    "piece",
    [
        "<a ",
        "<!--",
        "<!--x>",
        "<![CDATA[",
        "<![CDATA[>",
        "<script>",
        "<?",
        "<b>",
        "</b>",
        "& ",
        '<a ="',
        "<a =' ",
        "<pre>",
        "<p translate=no>",
        "<meta encoding=",
        "<a:",
        "= ",
        "< ",
        "⟦",
    ],
)
def test_a_huge_document_is_read_at_once(piece, unchanged):
    document = f"a{piece * 20_000}b".encode()
    with suppress(UserError):
        assert translate_document(unchanged, document, "html")[0] == document


def parse(document, form):
    return etree.fromstring(
        document, etree.HTMLParser(encoding="utf-8") if form == "html" else None
    )


def translate_tree(tree, form):
    """Put the translations into the tree of a document."""
    if form == "html":
        translate_element(tree)
    for unit in tree.iter("{*}trans-unit", "{*}segment"):
        if unit.get("id", "").startswith("fill"):
            source, target, segments = map(unit.find, ["{*}source", "{*}target", "{*}seg-source"])
            if target is None:
                target = etree.Element(source.tag.replace("source", "target"))
                (source if segments is None else segments).addnext(target)
            fill(target, source)
    for unit in tree.iter("tu"):
        if unit.get("tuid", "").startswith("fill"):
            variants = {variant.values()[0][:2].lower(): variant for variant in unit.iter("tuv")}
            source = variants.pop("de" if "de" in variants else "ge")
            if "en" not in variants:
                target = etree.Element("tuv", {LANG: "en"})
                etree.SubElement(target, "seg")
                source.addnext(target)
                variants["en"] = target
            fill(variants["en"].find("seg"), source.find("seg"))


def fill(target, source):
    target[:] = deepcopy(source)
    target.text = source.text
    translate_element(target)


def translate_element(element):
    for each in element.iter():
        if isinstance(each.tag, str) and each.tag not in ("script", "style"):
            each.text = translate_text(each.text)
        if each is not element:
            each.tail = translate_text(each.tail)


def translate_text(text):
    return (text or "").replace("Hund", "dog &")


def outline(tree):
    """All that a tree holds, but for the number of spaces."""
    return [
        (
            each.tag,
            each.attrib,
            "".join((each.text or "").split()),
            "".join((each.tail or "").split()),
        )
        for each in tree.iter()
    ]
