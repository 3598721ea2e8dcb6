"""Parallel text as people keep it, read as pairs, and what is told where it is nearly right."""

import csv
import gzip
import json
import lzma
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.corpus import find_text
from seq2seq_attn.text.lines import read_lines

PAIRS = [("Hello.", "Bonjour."), ("", ""), ("A dog\u2028runs.", "Un chien court.")]
Compress = Callable[[bytes], bytes]


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, content: str | bytes) -> str:
    data = content.encode() if isinstance(content, str) else content
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return name


def write_two(prefix: str, suffix: str = "") -> str:
    for side, language in enumerate(("en", "fr")):
        write(f"{prefix}.{language}{suffix}", "".join(f"{pair[side]}\n" for pair in PAIRS))
    return prefix


def read(spec: str | list[str], *languages: str | None) -> list[tuple[str, str]]:
    return list(find_text(spec, *(languages or ("en", "fr"))).pairs())


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_two_files_and_tab_separated_values(suffix: str) -> None:
    prefix = write_two("corpus/train.v2", suffix)
    assert read(prefix) == PAIRS
    assert read([f"{prefix}.en{suffix}", f"{prefix}.fr{suffix}"]) == PAIRS
    name = write(
        f"train.tsv{suffix}", "".join(f"{source}\t{target}\r\n" for source, target in PAIRS) + "\n"
    )
    assert read(name) == [*PAIRS, ("", "")]


def test_names_of_columns_and_keys_say_which_is_which() -> None:
    for header in ("fr\ten", "FR\tEN", "French\tEnglish", "target\tsource", "tgt\tsrc"):
        assert read(write("train.tsv", f"{header}\nBonjour.\tHello.\n")) == [("Hello.", "Bonjour.")]
    sides = (
        "text_fr,text_en",
        "fr-sentence,en-sentence",
        "target_text,source_text",
        "tgt,src",
        "French,english",
    )
    for names in (f"id,{side}" for side in sides):
        pairs = read(write("a.csv", f'{names}\n7,"Oui, oui.",Yes.\n8,Non.,No.\n'))
        assert pairs == [("Yes.", "Oui, oui."), ("No.", "Non.")]
    for keys in (("source", "target"), ("src", "tgt"), ("en_text", "fr_text")):
        line = json.dumps(
            {"id": 7, "score": 0.5, **dict(zip(keys, ("Hello.", "Bonjour."), strict=True))}
        )
        assert read(write("train.jsonl", f"{line}\n")) == [("Hello.", "Bonjour.")]
    assert read(write("a", json.dumps({"source": "news", "en": "Yes.", "fr": "Oui."}))) == [
        ("Yes.", "Oui.")
    ]


@pytest.mark.parametrize("is_nested", [False, True])
@pytest.mark.parametrize("indent", [None, 2])
def test_json(is_nested: bool, indent: int | None) -> None:
    pairs = [{"fr": target, "en": source or None} for source, target in PAIRS]
    objects = [{"id": 1, "translation": pair} if is_nested else {"id": 1, **pair} for pair in pairs]
    expected = [PAIRS[0], PAIRS[1], ("A dog runs.", "Un chien court.")]
    assert (
        read(write("a.gz", "\n".join(json.dumps(each, indent=indent) for each in objects) + "\n\n"))
        == expected
    )
    assert read(write("a", json.dumps(objects, indent=indent))) == expected
    assert read(write("a", json.dumps([["no", "non"], ["yes", None]], indent=indent))) == [
        ("no", "non"),
        ("yes", ""),
    ]
    assert read(write("a", json.dumps({"en": "a\nb", "fr": "c\ud800"}))) == [("a b", "c\ufffd")]


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_csv_dialects(delimiter: str, quoting: int) -> None:
    rows = [
        ("en", "fr"),
        ("Yes, no; all|one.", "Oui."),
        ('She said "no".', "Elle a dit\nnon."),
        ("", ""),
    ]
    for quotes, row in (
        ({}, ('C:\\"x"', "c")),
        ({"doublequote": False, "escapechar": "\\"}, ('"x" y', "c")),
    ):
        with Path("pairs").open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream, delimiter=delimiter, quoting=quoting, **quotes).writerows(
                [*rows, row]
            )
        assert read("pairs") == [rows[1], ('She said "no".', "Elle a dit non."), ("", ""), row]
    write("quoted", "".join(f'"{source}"{delimiter}"{target}"\n' for source, target in PAIRS))
    assert read("quoted") == [PAIRS[0], PAIRS[1], ("A dog runs.", PAIRS[2][1])]
    lines = [
        ('"Go," he said.', '"Va", dit-il.'),
        ('"Yes."', '"Oui."'),
        ("a, b", "c, d"),
    ]  # text in a TSV
    for number in range(
        3
    ):  # the first characters, which tell the format, end on either side of a tab
        long = [("x" * 900 * number, "y" * 900)] * 100 + lines
        assert (
            read(write("a", "".join(f"{source}\t{target}\n" for source, target in long)))[100:]
            == lines
        )


def test_tmx() -> None:
    """Regions, inline markup, another order of languages, a language that a unit lacks."""
    name = write(
        "memory",
        """<?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx version="1.4"><header srclang="fr-FR"/><body>
        <tu tuid="1"><tuv xml:lang="fr-FR"><seg>Le <bpt i="1">&lt;b&gt;</bpt>chat<ept i="1"/> &amp; moi</seg></tuv>
        <tuv xml:lang="EN-GB"><prop>x</prop><seg>The cat
        and I</seg></tuv></tu>
        <tu><tuv lang="en"><seg>Only English</seg></tuv></tu></body></tmx>""",
    )
    pairs = [(" ".join(source.split()), target) for source, target in read(name)]
    assert pairs == [("The cat and I", "Le chat & moi"), ("Only English", "")]
    assert find_text(name, None, None).languages == ("fr", "en")
    for spec, language in ((name, "de"), ([name, write("b.txt", "x\n")], "fr")):
        with pytest.raises(UsageError, match=r"^memory"):
            find_text(spec, "en", language)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nc\n", "row 2"),
        ("a\tb\nc\td\tby me\n", "row 2"),
        ("1\t2\tby me\n", "row 1"),
        ('a;b\n"c;d\n', "row 2"),
        ("a;b\n" * 20_000 + "c;d;e\n", "row 20001"),
        ('{"en": "a"}\n', "row 1.*fr"),
        ('{"en": "a", "fr": "b"}\n' * 2_000 + '{"en": "a"}', "row 2001.*fr"),
        ('{"en": "a", "fr": "b"}\n{"en": ', "row 2"),
        ('{"en": "a", "fr": "b"}\n{"en": 1, "fr": 2}', "row 2"),
        ('[{"en": "a", "fr": "b"}', "row 2"),
        ("[" * 100_000, "row 1"),
        ('{"en": "a", "fr": "b"}\n"a"\n', "row 2"),
        ("<tmx><body><tu><tuv lang='en'><seg>a</seg></tuv></tu>", "row 2"),
        ("<tmx>\n<tu><tuv></tu></tmx>", "row 1"),
        ("1\n00:00:01,000 --> 00:00:02,000\nHello.\n", "subtitles"),
        ("WEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n", "subtitles"),
        ('<?xml version="1.0"?>\n<xliff/>\n', "XML"),
        ('<refset setid="x">\n<seg id="1">Hello.</seg>\n', "XML"),
    ],
)
def test_rows_that_are_no_pair(text: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^a.gz.*{message}"):
        read(write("a.gz", text))
    if message in ("subtitles", "XML"):
        with pytest.raises(UserError, match=message):
            read([write("a", text), write("b", "x\n")])


@pytest.mark.parametrize(
    ("spec", "languages", "message"),
    [
        ("train.en", ("en", "fr"), "train.en"),
        ("folder", ("en", "fr"), "folder"),
        ("half", ("en", "fr"), "half.fr"),
        ("folder/train.txt", ("en", "fr"), "folder/train.txt"),
        ("absent", ("en", "fr"), "absent"),
        (["train.en", "absent.fr"], ("en", "fr"), "absent.fr"),
        (["folder", "train.fr"], ("en", "fr"), "folder"),
        (["train.en", "train.en"], ("en", "fr"), "the same file"),
        (["a", "b", "c"], ("en", "fr"), "a, b, c"),
        (["pipe", "half.en"], ("en", "fr"), "pipe"),
        ("pipe", ("en", "fr"), "pipe"),
        ("train", (None, None), "train"),
        ("train", ("de", None), "--target-language"),
        ("plain.tsv", (None, None), "plain.tsv"),
        ("words.tsv", ("de", None), "--target-language"),  # `cat` is a word
        ("train.en", (None, None), "train.en"),
        (["plain.tsv", "train.en"], (None, None), "plain.tsv, train.en"),
        ("train", ("en", "en"), "the same file"),
        ("train", ("fr", "en", "en"), "the same file"),
        ("named.jsonl", ("en", "en"), "named.jsonl.*en"),
        *(("named.tsv", languages, "named.tsv") for languages in (("de", "en"), ("en", "cs"), ("fr", "fr"))),
        (["train.fr", "train.en"], ("en", "fr"), "train.fr, train.en.* en, fr"),
        (["train.cs.gz", "train.fr"], ("de", "en"), "train.cs.gz, train.fr.* de, en"),
        (["a.fr", "a.de", "a.en"], ("de", "fr", "en"), "a.fr, a.de, a.en.* de, fr, en"),
    ],
)  # fmt: skip
def test_names_and_languages_that_are_nearly_right(
    spec: str | list[str], languages: tuple[str | None, ...], message: str
) -> None:
    write_two("train")
    write("folder/train.txt", "x\n")
    write("half.en", "x\n")
    write("plain.tsv", "Hello.\tBonjour.\n")
    write("words.tsv", "Katze\tcat\n")
    write("named.tsv", "en\tfr\nHello.\tBonjour.\n")
    write("named.jsonl", '{"en": "a", "fr": "b"}\n')
    os.mkfifo("pipe")
    with pytest.raises(UserError, match=message):
        find_text(spec, *languages)


def test_languages_come_from_the_files_where_they_are_clear() -> None:
    write_two("train")
    write("named.tsv", "fr\ten\nBonjour.\tHello.\n")
    write("three.tsv", "hau\tibo\nbarewa\tele\n")
    write("a.jsonl", '{"id": 3, "translation": {"de": "a", "en": "b"}}\n')
    for spec, languages, expected in (
        ("train", ("en", None), ("en", "fr")),
        ("train", (None, "en"), ("fr", "en")),
        (["train.fr", "train.en"], (None, None), ("fr", "en")),
        ("named.tsv", (None, None), ("fr", "en")),
        ("three.tsv", (None, None), ("hau", "ibo")),
        ("a.jsonl", (None, None), ("de", "en")),
        ("a.jsonl", (None, "de"), ("en", "de")),
    ):
        assert find_text(spec, *languages).languages == expected


def test_two_sides_may_have_one_language_and_a_first_line_that_names_no_languages_is_a_pair() -> (
    None
):
    files = [write("wrong.en", "a dgo\n"), write("right.en", "a dog\n")]
    for spec in (files, write("a.tsv", "a dgo\ta dog\n"), write("b.tsv", "en\ten\na dgo\ta dog\n")):
        assert read(spec, "en", "en") == [("a dgo", "a dog")]
    first_lines = [
        ("en\tFrench", ("de", "en")),
        ("as\tis", ("typo", "word")),
        ("English\tanglais", ("en", "fr")),
    ]
    for line, languages in first_lines:
        assert read(write("train.tsv", f"{line}\n"), *languages) == [tuple(line.split("\t"))]


def test_file_names_may_say_less_or_more_than_the_languages() -> None:
    for spec, languages in (
        (["train.de", "train.en"], ("de", "en-GB")),
        (["train.pt_BR", "train.en"], ("pt", "en")),
        (["train.de", "train.en"], ("de", "tlh")),
        (["train.en", "train.txt"], ("de", "en")),
        (["x.en", "y.en"], ("typo", "word")),
    ):
        for name in spec:
            write(name, "x\n")
        assert find_text(spec, *languages).languages == languages


ENGLISH = [
    "The dog is in the house.",
    "What have you done to it?",
    "This was not for him, but for her.",
    "I can see that he is here.",
]
FRENCH = [
    "Le chien est dans la maison.",
    "Que lui avez-vous fait ?",
    "Ce n'était pas pour lui, mais pour elle.",
    "Je vois qu'il est ici.",
]
GERMAN = [
    "Der Hund ist im Haus.",
    "Was hast du damit gemacht?",
    "Das war nicht für ihn, sondern für sie.",
    "Ich sehe, dass er hier ist.",
]
CREDIT = "CC-BY 2.0 (Attribution) example.org #{0} (user) & #1{0} (other)"


def table(*columns: list[str]) -> str:
    return "".join(
        "\t".join(row) + "\n" for row in zip(*[column * 3 for column in columns], strict=True)
    )


def test_columns_are_chosen_by_what_they_hold(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    ids, credits = (
        [str(300 + number) for number in range(4)],
        [CREDIT.format(number) for number in range(4)],
    )
    for columns, shown in (
        ([ids, ["fr"] * 4, FRENCH, ids, ["de"] * 4, GERMAN], "fr in column 3, de in column 6"),
        ([ids, ["de"] * 4, GERMAN, ids, ["fr"] * 4, FRENCH], "fr in column 6, de in column 3"),
        ([GERMAN, FRENCH, credits], "fr in column 2, de in column 1"),
        ([credits, ENGLISH, FRENCH, ["2024-01-01"] * 4, GERMAN], "fr in column 3, de in column 5"),
        ([GERMAN, FRENCH], "fr in column 2, de in column 1"),
    ):
        assert read(write("pairs.txt", table(*columns)), "fr", "de") == list(
            zip(FRENCH * 3, GERMAN * 3, strict=True)
        )
        assert shown in caplog.messages[-1]
        assert (
            find_text("pairs.txt", "fra", "deu_Latn").columns
            == find_text("pairs.txt", "fr", "de").columns
        )
    # without frequent words, in the order of the file
    words = [["nuqneH", "Qapla'", "jIyaj", "HIja'"], ["wej", "cha'", "qo'", "yIDoghQo'"]]
    assert read(write("a", table(ids, *words)), "tlh", "xx-yy")[:4] == list(
        zip(*words, strict=True)
    )


@pytest.mark.slow
def test_reading_a_table_takes_memory_that_does_not_grow() -> None:
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
        ("short\n", "line 2"),
        ('{"en": "a", "fr": "b"}\n{"en": "', "row 2"),
        ("<tmx><tu><seg>", "row 1"),
        ("a;b\n" * 20_000 + '"', "line 20001"),
    ],
)
def test_a_value_without_end_is_one_line_of_error(
    start: str, message: str, compress: Compress
) -> None:
    write("bomb", compress(start.encode() + b"x" * (40 << 20)))
    tracemalloc.start()
    with pytest.raises(UserError, match=f"bomb, {message}"):
        read_lines(Path("bomb")) if start == "short\n" else read("bomb")
    assert tracemalloc.get_traced_memory()[1] < (60 << 20 if start == "short\n" else 160 << 20)
    tracemalloc.stop()
