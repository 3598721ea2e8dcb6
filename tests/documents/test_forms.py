"""Only the texts of a document are translated; all other bytes come back."""

import random
import re

import pytest

from seq2seq_attn.api.documents import translate_document
from seq2seq_attn.errors import UsageError, UserError
from tests.documents import samples
from tests.documents.conftest import make_translator

FIELDS = {"srt": "", "vtt": "", "jsonl": "de", "csv": "text", "md": ""}


@pytest.mark.parametrize("form", FIELDS)
@pytest.mark.parametrize("seed", range(20))
def test_an_unchanged_translation_is_the_same_document(form, seed, unchanged):
    document = getattr(samples, f"make_{form}")(random.Random(seed))
    assert translate_document(unchanged, document, form, field=FIELDS[form]) == (document, [])


@pytest.mark.parametrize("form", ["srt", "vtt"])
@pytest.mark.parametrize("seed", range(20))
def test_time_stamps_and_numbers_stay(form, seed):
    document = getattr(samples, f"make_{form}")(random.Random(seed))
    translator = make_translator(lambda line: f"{line} a\nb & c < d --> e")
    translated, _ = translate_document(translator, document, form)
    assert cue_starts(translated) == cue_starts(document)


def cue_starts(document):
    """The time stamps, each with the line above it."""
    lines = document.decode("utf-8-sig").splitlines()
    return [lines[number - 1 : number + 1] for number, line in enumerate(lines) if "-->" in line]


@pytest.mark.parametrize(
    ("form", "source", "expected"),
    [
        ("srt", "1\n0:1 --> 0:2\nHund\n\n", "1\n0:1 --> 0:2\nHUND\n\n"),
        ("srt", "0:1 --> 0:2\n- Ja\n- <i>Hund</i>", "0:1 --> 0:2\n- JA\n- <i>HUND</i>"),
        ("srt", "0:1 --> 0:2\n<i>a\r\nb</i>", "0:1 --> 0:2\n<i>A B</i>"),
        ("srt", "0:1 --> 0:2\n<i>a</i>\n<i>b</i>", "0:1 --> 0:2\n<i>A</i>\n<i>B</i>"),
        ("srt", "0:1 --> 0:2\n<i>a</i>b", "0:1 --> 0:2\n<i>A</i>B"),
        ("srt", "0:1 --> 0:2\na{\\i1}b <b>c</b>.", "0:1 --> 0:2\nA{\\i1}B <b>C</b>."),
        ("srt", "0:1 --> 0:2\na</i> <b>b</b><i>c", "0:1 --> 0:2\nA</i> <b>B</b><i>C"),
        (
            "vtt",
            "WEBVTT\n\n0:1 --> 0:2\n<c>a</c> <0:2><c>b",
            "WEBVTT\n\n0:1 --> 0:2\n<c>A</c> <0:2><c>B",
        ),
        ("srt", "0:1 --> 0:2\na<i> b\nc</i>d<b>e", "0:1 --> 0:2\nA<i> B C</i>D<b>E"),
        (
            "srt",
            "0:1 --> 0:2\n{\\an8}a\n\nb\n\n2\n0:2 --> ",
            "0:1 --> 0:2\n{\\an8}A\n\nB\n\n2\n0:2 --> ",
        ),
        (
            "vtt",
            "WEBVTT a\n\nNOTE a\n\nx\n0:1 --> 0:2\n<v Anna>Ja",
            "WEBVTT a\n\nNOTE a\n\nx\n0:1 --> 0:2\n<v Anna>JA",
        ),
        ("vtt", "WEBVTT\n\n0:1 --> 0:2\n \na\n\nb", "WEBVTT\n\n0:1 --> 0:2\n \nA\n\nb"),
        ("jsonl", '{"a": 1.0, "de": "x\\u00e4\\""}\r\n\n', '{"a": 1.0, "de": "X\\u00c4\\""}\r\n\n'),
        (
            "jsonl",
            '{"a": "b: \\"de\\": \\"c\\"", "de" : "ä"}',
            '{"a": "b: \\"de\\": \\"c\\"", "de" : "Ä"}',
        ),
        ("csv", 'id,text\n1,"a; ""b"""\n\n2,x "y"', 'id,text\n1,"A; ""B"""\n\n2,"X ""Y"""'),
        (
            "csv",
            '\ufeffsep=|\r\ntext|"a|b"\r\n"x\r\ny"|z',
            '\ufeffsep=|\r\ntext|"a|b"\r\n"X\r\nY"|z',
        ),
        ("csv", 'a, text\n1, "x, y"\n2, z', 'a, text\n1, "X, Y"\n2, Z'),
        ("csv", "a;text\n1;x, y|z", "a;text\n1;X, Y|Z"),
        ("csv", 'a\ttext\n1\tx, "y"; z', 'a\ttext\n1\tX, "Y"; Z'),
        ("csv", '"a"\ttext\n1\tx, y\n2\tx "y"', '"a"\ttext\n1\tX, Y\n2\t"X ""Y"""'),
        (
            "po",
            'msgid "a"\nmsgstr "b"\n\nmsgid "c"\nmsgstr ""\n""',
            'msgid "a"\nmsgstr "b"\n\nmsgid "c"\nmsgstr "C"',
        ),
        (
            "po",
            'msgid ""\n"a \\"b\\"\\n"\n"c"\nmsgstr ""',
            'msgid ""\n"a \\"b\\"\\n"\n"c"\nmsgstr "A \\"B\\"\\nC"',
        ),
        (
            "md",
            "---\na: b\n---\n# a\n\n- b\n  c\n\n      d",
            "---\na: b\n---\n# A\n\n- B C\n\n      d",
        ),
        ("md", "---\n\na\n\n---\n", "---\n\nA\n\n---\n"),
        ("md", "| a | b\\|c |\n|-|-|\n| `d` | e |", "| A | B\\|C |\n|-|-|\n| `d` | E |"),
        (
            "md",
            '**a** *b* [c d](e_f "g"), `h` i\\*.\n\nj [k][1] l m_n 2 * 3',
            '**A** *B* [C D](e_f "g"), `h` I\\*.\n\nJ [K][1] L M_N 2 * 3',
        ),
        ("jsonl", '{"de": " a \\n b\\n\\n1\\n"}', '{"de": " A \\n B\\n\\n1\\n"}'),
    ],
)
def test_only_the_text_is_translated(form, source, expected, upper):
    translated = translate_document(upper, source.encode(), form, field=FIELDS.get(form, ""))
    assert translated == (expected.encode(), [])


def test_the_lines_of_a_cue_are_one_text_and_stay_lines():
    texts = []
    translator = make_translator(lambda text: texts.append(text) or "eins zwei drei vier " * 3)
    source = b"0:1 --> 0:2\nEin Hund\nschl\xc3\xa4ft heute."
    translated, _ = translate_document(translator, source, "srt")
    assert texts == ["Ein Hund schläft heute."]
    assert len(translated.split(b"\n")) == 3


@pytest.mark.parametrize(
    "placeholder",
    [
        "%s",
        "%(name)d",
        "%1$s",
        "{0}",
        "{name}",
        "${x}",
        "$x",
        "%name%",
        "https://a.b/c",
        "ftp://a.b/c",
        "www.a.b/c",
        "a.b+c@d-e.de",
        "%1",
        "%L2",
        "%n",
        "@count",
        ":name",
        "⟦1⟧",
        "&lt;",
    ],
)
@pytest.mark.parametrize("wrong", ["", "{0} {0}"])
def test_a_placeholder_must_come_back_once(placeholder, wrong):
    source = f"0:1 --> 0:2\nEin Hund {placeholder} heute".encode()
    translator = make_translator(lambda line: line.upper().replace(placeholder.upper(), wrong))
    assert translate_document(translator, source, "srt") == (
        source,
        [f"line 2: 'Ein Hund {placeholder} heute'"],
    )


@pytest.mark.parametrize(
    "words",
    ["10:45", "50 % of", "50 %nach", "Achtung: Text", "a:b", "a::b", "rennt!", "!", "@ 5", "a@b"],
)
def test_ordinary_text_is_no_placeholder(words):
    source = f"0:1 --> 0:2\nEin Hund {words}\n".encode()
    translator = make_translator(lambda line: "A dog")
    assert translate_document(translator, source, "srt") == (b"0:1 --> 0:2\nA dog\n", [])


def test_numbered_placeholders_may_change_their_order():
    translator = make_translator(lambda line: "%2 b %1")
    translated, _ = translate_document(translator, b'msgid "%1 a %2"\nmsgstr ""', "po")
    assert translated == b'msgid "%1 a %2"\nmsgstr "%2 b %1"'


def test_a_message_with_nested_plural_forms_stays(upper):
    source = b"0:1 --> 0:2\n{N, PLURAL, ONE {ein Hund} OTHER {# Hunde}}"
    assert translate_document(upper, source, "srt")[0] == source


def test_a_tag_of_subtitles_must_come_back():
    source = b"0:1 --> 0:2\na <b>b</b>c"
    translator = make_translator(lambda line: line.replace("⟦2⟧", ""))
    assert translate_document(translator, source, "srt")[0] == source


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_kept(encoding, upper):
    source = "1\r\n0:1 --> 0:2\r\nHünd\r\n".encode(encoding)
    translated, _ = translate_document(upper, source, "srt")
    assert translated == "1\r\n0:1 --> 0:2\r\nHÜND\r\n".encode(encoding)


@pytest.mark.parametrize(
    ("num_forms", "expected"), [(1, ["BB %s"]), (2, ["A %s", "BB %s"]), (3, ["BB %s"] * 3)]
)
def test_the_forms_of_a_plural_are_translated(num_forms, expected):
    forms = [f'msgstr[{index}] "%s"\n' for index in range(num_forms)]
    source = 'msgid "a %s"\nmsgid_plural "bb %s"\n' + "".join(forms)
    translator = make_translator(lambda line: line[:-2].upper() + "%s")
    empty = source.replace('"%s"', '""')
    translated, _ = translate_document(translator, empty.encode(), "po")
    values = [line.split('"')[1] for line in translated.decode().splitlines()[2:]]
    assert values == expected


def test_the_forms_of_a_plural_stay_empty_together():
    source = b'msgid "a"\nmsgid_plural "b %d"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    translator = make_translator(lambda line: line.replace("%d", ""))
    new, messages = translate_document(translator, source, "po")
    assert (new, len(messages)) == (source, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        "a *b*",
        "- a b",
        "a `b`",
        "a [b]",
        "a b\n\nc",
        "a | b",
        "a <b",
        "# a",
        "1. a",
        "***",
        "> a",
        "===",
        "---",
        "~~~",
        "a\\",
        "\\",
        ": a",
        "$$ a",
        ":::a",
        "a [b][]",
    ],
)
def test_a_translation_with_other_markup_is_not_written(wrong):
    translator = make_translator(lambda line: wrong)
    assert translate_document(translator, b"> c d\n", "md") == (b"> c d\n", ["line 1: 'c d'"])


@pytest.mark.parametrize(
    ("form", "source", "message"),
    [
        ("srt", b"a\nH\xfcnd", "byte"),
        ("srt", b"a\0b", "NUL"),
        ("po", b'# a\nmsgid "b"\n', "line 2"),
        ("po", b'msgid "b"\nmsgstr "', "line 1"),
        ("po", b'msgid "\\q"\nmsgstr ""', "line 1"),
        ("po", b'# a\nmsgid ""\nmsgstr ""\n"a\\n"\n"Content-Type: charset=latin-1"', "line 2"),
        ("po", b'#, fuzzy\nmsgid ""\nmsgstr "a\\n"\n"Language: fr_CA\\n"', "fr"),
        ("srt", b"Ein Hund\n", "time"),
        ("srt", b"Hund --> dog\n", "line 1"),
        ("srt", b"0:1" + b">" * 50_000, "time"),
        ("vtt", b"WEBVTT\n\nHund\n", "time"),
        ("vtt", b"WEBVTT\n\n0:1 -> 0:2\na\n\n0:2 --> 0:3\n", "line 3"),
        ("csv", b"a,text\n1,b\n2,c,d\n", "line 3"),
        ("csv", b'a,text\n1,"b\n', "line 2"),
        ("csv", b'a,text\n1,b\n1,"b\n2,c\n', "line 3"),
        ("csv", b'a,text,c\n1, "b, c"\n', "line 2"),
    ],
)
def test_damage_is_refused(form, source, message, unchanged):
    with pytest.raises(UserError, match=message):
        translate_document(unchanged, source, form, field=FIELDS.get(form, ""))


@pytest.mark.parametrize("language", ["", "en", "en_GB", "eng", "en@latin", "English"])
def test_a_catalogue_in_the_target_language_is_translated(language, upper):
    source = f'msgid ""\nmsgstr "Language: {language}\\nX-Language: fr"\n\nmsgid "a"\nmsgstr ""'
    translated, _ = translate_document(upper, source.encode(), "po")
    assert translated.decode() == f'{source[:-1]}A"'


@pytest.mark.parametrize(
    "line",
    [
        "0:1 -> 0:2",
        "00:00:01,000 —> 00:00:02,000",
        "00:00:01,000 --&gt; 00:00:02,000",
        "0:00:01.000 – 0:00:02.000 align:start",
        "00:00:01,000",
        "00:01.000 ->",
        "x 0:1 --> 0:2",
    ],
)
def test_a_damaged_time_line_is_refused(line, unchanged):
    with pytest.raises(UserError, match="line 3"):
        translate_document(unchanged, f"0:1 --> 0:2\na\n{line}\nb".encode(), "srt")


@pytest.mark.parametrize(
    "line", ["22:15", "9:00 - 18:00 a", "1:47.532", "a -> b", "10:30 >> a", "<00:01.000>a", "1 > 0"]
)
def test_a_text_with_times_or_arrows_stays_a_text(line, upper):
    source = f"0:1 --> 0:2\n{line} b\n"
    assert translate_document(upper, source.encode(), "srt")[0].decode() == source.upper()


@pytest.mark.parametrize("field", ["", "c", "4", "0", "b"])
def test_one_column_of_the_header_is_asked_for(field, unchanged):
    with pytest.raises(UsageError, match="a, b, b"):
        translate_document(unchanged, b"a;b;b\n1;2;3\n", "csv", field=field)


def test_a_delimiter_that_is_not_certain_is_refused(unchanged):
    with pytest.raises(UsageError, match="sep=;"):
        translate_document(unchanged, b"text,a;text\n1,b;2\n", "csv", field="2")


@pytest.mark.parametrize(("field", "shown"), [("1", ["Ein Hund"]), ("Ein Hund", [])])
def test_a_first_row_that_may_be_a_header_is_logged(field, shown, upper, caplog):
    caplog.set_level("INFO")
    translated, _ = translate_document(upper, b"Ein Hund,a\nzwei,2\n", "csv", field=field)
    assert translated == b"Ein Hund,a\nZWEI,2\n"
    assert [message.count("Ein Hund") for message in caplog.messages] == [1] * len(shown)


@pytest.mark.parametrize("mark", [",", "\t"])
def test_rows_between_two_stray_quotation_marks_are_refused(mark, unchanged):
    rows = ["text,x", "a,1", '"b,2', "c,3", 'd",4', "e,5"]
    table = "\n".join(rows).replace(",", mark)
    with pytest.raises(UserError, match="line 3"):
        translate_document(unchanged, table.encode(), "csv", field="x")


@pytest.mark.parametrize("cell", ["a,b\nc", "a, b\nc, d\ne", "a,b\nc,d\ne,f"])
def test_cells_with_lines_and_commas_are_read(cell, upper):
    table = f'text,x\n"{cell}",1\n'
    translated, _ = translate_document(upper, table.encode(), "csv", field="text")
    assert translated.decode() == f'text,x\n"{cell.upper()}",1\n'


def test_a_tab_in_a_translation_does_not_split_a_cell():
    translator = make_translator(lambda line: f"{line}\tb")
    assert translate_document(translator, b"text\tx\na\t1\n", "tsv", field="text")[1]


@pytest.mark.parametrize("word", [f"https://a.b/{'c-d' * 20}", f"<font {'color=x ' * 9}>"])
def test_a_placeholder_stays_in_a_line(word):
    translator = make_translator(lambda line: f"Dog {line.split(maxsplit=1)[1]}")
    source = f"0:1 --> 0:2\nHund {word} a\nb\n"
    translated = translate_document(translator, source.encode(), "srt")[0].decode()
    assert word in translated


def test_a_text_without_bytes_in_the_encoding_stays(upper):
    source = '{"de": "ä \\ud800"}'.encode()
    assert translate_document(upper, source, "jsonl", field="de")[0] == source


def test_inline_markdown_stays_where_its_marks_are_lost():
    translator = make_translator(lambda line: re.sub(" ?⟦.⟧", "", line))
    translated, messages = translate_document(translator, b"a **b** c\n", "md")
    assert (translated, len(messages)) == (b"a **b** c\n", 1)


def test_markdown_inside_a_word_stays(upper):
    assert translate_document(upper, b"un**do**able\n", "md")[0] == b"un**do**able\n"


@pytest.mark.parametrize(
    ("source", "line", "expected"),
    [
        ("Er sieht `c` oft, und", "he often sees ⟦1⟧, and", "he often sees `c`, and"),
        ("Er sieht `c`.\nSie", "he sees. ⟦1⟧ She", "he sees. `c` She"),
        ("Das [![a](b)](d), und", "the ⟦1⟧ and", "the [![a](b)](d) and"),
        ("`c`. Er sieht", "he sees", "`c` he sees"),
        ("Heute **Katzen**.", "eat ⟦1⟧ cats ⟦2⟧ today .", "eat **cats** today ."),
    ],
)
def test_inline_markdown_moves_with_its_words(source, line, expected):
    translator = make_translator(lambda _: line)
    assert translate_document(translator, source.encode(), "md") == (expected.encode(), [])


@pytest.mark.parametrize(
    "source",
    [":::note\nHund\n:::\n", "Hund\n: Katze\n", "$$\nHund\n$$\n", "!!! a\n    b\n", "??? a\n"],
)
def test_blocks_of_extended_markdown_stay(source, upper):
    translated, messages = translate_document(upper, source.encode(), "md")
    assert (translated.decode(), len(messages)) == (source, 1)


@pytest.mark.parametrize("text", ["a %s b %d", "%@ a %s"])
def test_placeholders_without_a_number_keep_their_order(text):
    first, *_, last = re.findall("%.", text)
    translator = make_translator(lambda line: f"{last} a {first}")
    source = f'msgid "{text}"\nmsgstr ""'.encode()
    assert translate_document(translator, source, "po")[0] == source


@pytest.mark.parametrize("form", ["po", "xlf"])
def test_a_translation_with_control_characters_is_not_written(form):
    source = {"po": 'msgid "a"\nmsgstr ""', "xlf": "<segment><source>a</source></segment>"}[form]
    translator = make_translator(lambda line: "b\x1b")
    assert len(translate_document(translator, source.encode(), form)[1]) == 1


def test_an_unknown_form_is_refused(unchanged):
    with pytest.raises(UsageError, match="docx"):
        translate_document(unchanged, b"", "docx")


@pytest.mark.parametrize(
    "piece", [" ", "\u2028", "<", "<a", "{\\", "-", "a ", "0", "</i>", "\n{\\a}"]
)
def test_a_huge_cue_is_read_at_once(piece, unchanged):
    document = f"0:1 --> 0:2\na %{piece * 50_000}b\n".encode()
    assert translate_document(unchanged, document, "srt")[0] == document


@pytest.mark.parametrize(
    "source",
    [
        '{"de": "a"',
        '["de"]',
        '{"en": "a"}',
        '{"de": 1}',
        '{"de": "a", "b": {"de": "c"}}',
        '{"a": {"de": "c"}}',
        '{"de": 1, "b": {"de": "c"}}',
        '{"de": "c", "de": 1}',
    ],
)
def test_objects_without_one_text_in_the_field_are_refused(source, unchanged):
    with pytest.raises(UserError):
        translate_document(unchanged, source.encode(), "jsonl", field="de")


@pytest.mark.parametrize(("form", "field"), [("srt", "de"), ("jsonl", "")])
def test_a_field_belongs_to_forms_with_fields(form, field, unchanged):
    with pytest.raises(UsageError, match="--field"):
        translate_document(unchanged, b"{}", form, field=field)


def test_a_document_is_bytes(unchanged):
    with pytest.raises(TypeError, match="expected bytes"):
        translate_document(unchanged, "a text", "srt")
