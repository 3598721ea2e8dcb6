"""Tables of each form as pairs, and damaged rows."""

import csv
import gzip
import json
import lzma
import tracemalloc
from pathlib import Path

import pytest

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.corpus import find_text
from seq2seq_attn.text.lines import read_lines
from seq2seq_attn.text.tables import Damage
from tests.text.conftest import PAIRS, read

ONE_LINE_PAIRS = [*PAIRS[:2], ("A dog runs.", "Un chien court.")]
UNIT = "<tu><tuv xml:lang='en'><seg>a</seg></tuv><tuv xml:lang='fr'><seg>b</seg></tuv></tu>\n"


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_tab_separated_values(write, suffix):
    rows = "".join(f"{source}\t{target}\r\n" for source, target in PAIRS)
    assert read(write(f"train.tsv{suffix}", f"{rows}\n"), columns="1,2") == [*PAIRS, ("", "")]


@pytest.mark.parametrize("num_long", [0, 1, 2])
def test_quotation_marks_in_tab_separated_values_are_text(write, num_long):
    lines = [('"Go," he said.', '"Va", dit-il.'), ('"Yes."', '"Oui."'), ("a, b", "c, d")]
    # the first characters, which tell the form, end on either side of a tab
    long = [("x" * 900 * num_long, "y" * 900)] * 100
    text = "".join(f"{source}\t{target}\n" for source, target in [*long, *lines])
    assert read(write("a", text), columns="1,2")[100:] == lines


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize(
    ("quotes", "last"),
    [({}, ('C:\\"x"', "c")), ({"doublequote": False, "escapechar": "\\"}, ('"x" y', "c"))],
)
def test_csv_dialects(write, delimiter, quoting, quotes, last):
    write("pairs", "")
    rows = [("Yes, no; all|one.", "Oui."), ('She said "no".', "Elle a dit\nnon."), ("", ""), last]
    with Path("pairs").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter, quoting=quoting, **quotes)
        writer.writerows([("en", "fr"), *rows])
    assert read("pairs") == [rows[0], ('She said "no".', "Elle a dit non."), ("", ""), last]


@pytest.mark.parametrize("delimiter", [",", ", ", ";", "|", "\t"])
def test_quoted_cells_without_a_header(write, delimiter):
    text = "".join(f'"{source}"{delimiter}"{target}"\n' for source, target in PAIRS)
    assert read(write("quoted", text), columns="1,2") == ONE_LINE_PAIRS


def test_a_first_line_may_name_the_separator(write):
    text = "\ufeffsep=;\nFrench;English\nun, deux;one, two\n"
    assert read(write("excel.csv", text)) == [("one, two", "un, deux")]


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("indent", [None, 2])
def test_json_objects_one_after_another_or_in_a_list(write, is_nested, indent):
    pairs = [{"fr": target, "en": source or None} for source, target in PAIRS]
    objects = [{"id": 1, "translation": pair} if is_nested else {"id": 1, **pair} for pair in pairs]
    lines = "\n".join(json.dumps(each, indent=indent) for each in objects)
    assert read(write("a.gz", f"{lines}\n\n")) == ONE_LINE_PAIRS
    assert read(write("a", json.dumps(objects, indent=indent))) == ONE_LINE_PAIRS


def test_json_lists_have_numbered_columns_and_null_is_blank(write):
    text = json.dumps([["no", "non"], ["yes", None]])
    assert read(write("a", text), columns="1,2") == [("no", "non"), ("yes", "")]


def test_a_json_object_of_pairs_is_refused(write):
    pairs = {"0": {"en": "Yes.", "fr": "Oui."}, "1": {"en": "No.", "fr": "Non."}}
    with pytest.raises(UserError, match=r"^a, line 1: damaged"):
        read(write("a", json.dumps(pairs)))


def test_json_text_becomes_one_line_of_valid_unicode(write):
    assert read(write("a", json.dumps({"en": "a\nb", "fr": "c\ud800"}))) == [("a b", "c\ufffd")]


def test_tmx_units_in_any_order_with_markup(write):
    name = write(
        "memory",
        """<?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header srclang="fr-FR"/><body>
        <tu tuid="1"><tuv xml:lang="fr-FR"><seg>Le <bpt i="1">&lt;b&gt;</bpt>chat<ept i="1"/>
        &amp;&nbsp;moi</seg></tuv><tuv xml:lang="EN-GB"><prop>x</prop><seg>The cat
        and I</seg></tuv></tu>
        <tu><tuv lang="en"><seg>Only English</seg></tuv></tu></body></tmx>""",
    )
    pairs = [(" ".join(source.split()), " ".join(target.split())) for source, target in read(name)]
    assert pairs == [("The cat and I", "Le chat & moi"), ("Only English", "")]
    assert find_text(name, None, None).languages == ("fr", "en")


def test_tmx_codes_of_three_letters_are_those_of_two(write):
    other = UNIT.replace("'en'", "'eng'").replace("'fr'", "'fra-CA'")
    assert read(write("a.tmx", f"<tmx>{UNIT}{other}</tmx>")) == [("a", "b")] * 2
    text = find_text(write("b.tmx", f"<tmx>{other}{UNIT}</tmx>"), "eng", "fra")
    assert [*text.pairs()] == [("a", "b")] * 2


def test_tmx_codes_with_a_region_choose_its_text(write):
    brazil = "<tu><tuv xml:lang='pt-PT'><seg>a</seg></tuv><tuv xml:lang='pt-BR'><seg>b</seg></tuv>"
    name = write("a.tmx", f"<tmx>{brazil}<tuv xml:lang='en'><seg>c</seg></tuv></tu></tmx>")
    assert read(name, "en", "pt-BR") == [("c", "b")]


@pytest.mark.parametrize(
    ("name", "start", "row", "damaged", "line"),
    [
        ("a.tsv", "en\tfr\n", "a\tb\n", "a\tb\tby me\n", 22),
        ("a.csv", "en,fr\n", "a,b\n", "a,b,c\n", 22),
        ("a.csv", "en,fr\n", '"a, b","c"\n', '"a, b","c" \n', 22),
        ("a.jsonl", "", '{"en": "a", "fr": "b"}\n', '{"en": "a", "fr": 2}\n', 21),
        ("a.jsonl", "", '{"en": "a", "fr": "b"}\n', '{"en": "a", "fr": "b\n', 21),
        ("a.tmx", "<tmx>\n", UNIT, UNIT.replace(">a<", ">&#x1F;<"), 22),
    ],
)
def test_a_damaged_row_among_many_is_left_out_and_counted(write, name, start, row, damaged, line):
    end = "</tmx>" if name == "a.tmx" else ""
    text = find_text(write(name, f"{start}{row * 20}{damaged}{row}{end}"), "en", "fr")
    damage = Damage()
    assert len([*text.pairs(damage)]) == 21
    assert damage.lines == [line]
    too_many = write(name, f"{start}{row * 20}{damaged * 2}{end}")
    with pytest.raises(UserError, match=rf"^{name}, line {line}: .*2 of 22"):
        find_text(too_many, "en", "fr")


@pytest.mark.parametrize("mark", [",", ";", "|"])
@pytest.mark.parametrize(
    "rows", ['"a,A\nb,B\nc",C\n', 'a,"A\nb,B\nc,C"\n', '"a,A\nb,B\nc,C\nd",D\n']
)
def test_rows_between_two_stray_quotation_marks_are_damaged(write, mark, rows):
    start = "en,fr\n" + "x,y\n" * 20
    damage = Damage()
    name = write("a.csv", f"{start}{rows}x,y\n".replace(",", mark))
    pairs = find_text(name, "en", "fr").pairs(damage)
    assert [*pairs] == [("x", "y")] * 21
    assert damage.lines == [22]
    name = write("b.csv", f"{start}{rows}{rows}".replace(",", mark))
    with pytest.raises(UserError, match=r"^b\.csv, line 22: .*2 of 22.*quotation"):
        find_text(name, "en", "fr")


@pytest.mark.parametrize(
    ("cell", "num_messages"),
    [("a,b\nc", 1), ("a, b\nc, d\ne", 1), ("a,b\nc,d\nef,g", 1), ("1\n2\n3", 0)],
)
def test_cells_with_lines_are_read_and_logged_if_they_have_separators(
    write, cell, num_messages, caplog
):
    caplog.set_level("INFO")
    # A cell is logged once, so each text has a name of its own.
    name = write(f"{len(cell)}.csv", f'en,fr\n"{cell}",x\n')
    assert [*find_text(name, "en", "fr").pairs()] == [(cell.replace("\n", " "), "x")]
    assert len(caplog.messages) == num_messages
    assert all(f"{name}, line 2" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nc\n", "not the same separators"),
        ("a\tb\nc\td\tby me\n", "line 2"),
        ('a;b\n"c;d\n', "not the same separators"),
        ('{"en": "a", "fr": "b"}\n{"en": ', "line 2"),
        ('[{"en": "a", "fr": "b"}', "line 1"),
        ("[" * 100_000, "line 1"),
        ("<tmx><body><tu><tuv lang='en'><seg>a</seg></tuv></tu>", "its end"),
        ("1\n00:00:01,000 --> 00:00:02,000\nHello.\n", "subtitles"),
        ('<?xml version="1.0"?>\n<xliff/>\n', "XML"),
        ('<refset setid="x">\n<seg id="1">Hello.</seg>\n', "XML"),
    ],
)
def test_a_file_that_is_no_table_is_refused(write, text, message):
    with pytest.raises(UserError, match=f"^a.gz.*{message}"):
        read(write("a.gz", text), columns="1,2")


@pytest.mark.parametrize("row", ['"c;d', 'c;"d'])
def test_a_quotation_without_its_end_is_named_by_its_line(write, row):
    rows = "a;b\n" * 5
    name = write("a.csv", f"en;fr\n{rows}{row}\n{rows * 4}")
    with pytest.raises(UserError, match=r"^a\.csv, line 7: .*quotation"):
        read(name)


@pytest.mark.slow
def test_reading_a_table_takes_memory_that_does_not_grow(write):
    peaks = []
    for num_rows in (60_000, 240_000):
        write("a.json", json.dumps([{"en": "Yes, indeed.", "fr": "Oui, en effet."}] * num_rows))
        tracemalloc.start()
        assert sum(1 for _ in find_text("a.json", "en", "fr").pairs()) == num_rows
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("short\n", "bomb, line 2"),
        ('{"en": "a", "fr": "b"}\n{"en": "', "bomb: .*line 2"),
        ("<tmx><tu><seg>", "bomb: .*line 1"),
        ("a;b\n" * 20_000 + '"', "bomb, line 20001"),
    ],
)
def test_a_value_without_end_is_one_line_of_error_in_bounded_memory(
    write, start, message, compress
):
    write("bomb", compress(start.encode() + b"x" * (40 << 20)))
    tracemalloc.start()
    with pytest.raises(UserError, match=message):
        read_lines(Path("bomb")) if start == "short\n" else read("bomb", columns="1,2")
    assert tracemalloc.get_traced_memory()[1] < (60 << 20 if start == "short\n" else 160 << 20)
    tracemalloc.stop()


def test_lines_in_the_wrong_form_are_told_by_the_suffix(write):
    assert read(write("code.tsv", '["x"]  # 0\tlist\n'), columns="1,2") == [('["x"]  # 0', "list")]
