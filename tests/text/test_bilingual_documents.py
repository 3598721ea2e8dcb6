"""Catalogues and XLIFF as parallel text: what is not translated has a blank side."""

import random

import pytest

from seq2seq_attn.errors import UsageError, UserError
from tests.documents import markup_samples
from tests.text.conftest import read

CATALOGUE = r"""
msgid ""
msgstr "Language: fr"

# a comment, fuzzy
msgctxt "menu"
msgid "A dog\n"
"runs."
msgstr "Un \"chien\" "
"court."

#, fuzzy, c-format
msgid "A cat"
msgstr "Un chat ?"

msgid "one dog"
msgid_plural "%d dogs"
msgstr[0] "un chien"
msgstr[1] "%d chiens"

msgid "new"
msgstr ""

#~ msgid "old"
#~ msgstr "vieux"
"""
PAIRS = [
    ("", "Language: fr"),
    ("A dog runs.", 'Un "chien" court.'),
    ("", ""),
    ("%d dogs", "%d chiens"),
    ("new", ""),
]
V1 = """<?xml version="1.0"?><xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file source-language="en-GB" target-language="fr"><body>
<trans-unit id="1"><source>A <g id="1">do</g>g &amp; &#99;at<ph id="2">&lt;br&gt;</ph></source>
<seg-source>x</seg-source><target state="final">Un <![CDATA[chien & chat]]></target>
<alt-trans><source>y</source><target>z</target></alt-trans></trans-unit>
<trans-unit id="2"><source>new</source></trans-unit>
<trans-unit id="3"><source>empty</source><target/></trans-unit>
<trans-unit id="4"><source>late</source><target state="needs-translation">x</target></trans-unit>
<trans-unit id="5" translate="no"><source>code</source><target>code</target></trans-unit>
</body></file></xliff>"""
V2 = """<xliff version="2.0" srcLang="en" trgLang="fr"><file id="a"><unit id="1">
<segment><source>A dog</source><target>Un chien</target></segment>
<segment state="initial"><source>A cat</source><target>A cat</target></segment>
</unit></file></xliff>"""


def test_the_entries_of_a_catalogue_are_pairs(write):
    columns = "msgid,msgstr"
    path = write("a.po", CATALOGUE)
    assert read(path, columns=columns) == PAIRS


def test_the_sides_of_a_catalogue_are_named_by_the_user(write):
    with pytest.raises(UsageError, match="msgid,msgstr"):
        read(write("a.po", CATALOGUE), source="fr", target="en")


def test_the_units_of_xliff_are_pairs_of_its_languages(write):
    unfinished = [("", "")] * 3
    pairs = [("A dog & cat", "Un chien & chat"), *unfinished]
    assert read(write("a.xlf", V1), source=None, target=None) == pairs
    back = [(target, source) for source, target in pairs]
    assert read(write("a.xliff", V1), source="fr", target="en") == back
    assert read(write("b.xlf", V2)) == [("A dog", "Un chien")]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("form", ["xlf", "xliff"])
def test_generated_xliff_is_read(write, form, seed):
    document = getattr(markup_samples, f"make_{form}")(random.Random(seed))
    path = write(f"a.{form}", document)
    assert all(source or not target for source, target in read(path, source="de", target="en"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.po", 'msgid "a\n'),
        ("a.xlf", V1[:-20]),
        ("a.xlf", V1.replace("</file>", '</file><file source-language="de"></file>')),
        ("a.xlf", V2.replace('srcLang="en"', "")),
        ("a.xlf", f'<!DOCTYPE x [<!ENTITY e "e">]>{V2.replace("A dog", "&e;")}'),
    ],
)
def test_damage_is_refused(write, name, text):
    options = {"columns": "msgid,msgstr"} if name == "a.po" else {}
    with pytest.raises(UserError, match=name):
        read(write(name, text), **options)
