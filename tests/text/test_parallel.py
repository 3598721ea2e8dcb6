"""Parallel text as people keep it, and what they are told where they are nearly right."""

import csv
import gzip
import json
import os
import tracemalloc
from pathlib import Path

import pytest

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.parallel import find_text

PAIRS = [("Hello.", "Bonjour."), ("", ""), ("A dog\u2028runs.", "Un chien court.")]


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, text: str) -> str:
    data = text.encode()
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return name


def write_two(prefix: str, suffix: str = "") -> str:
    for side, language in enumerate(("en", "fr")):
        write(f"{prefix}.{language}{suffix}", "".join(f"{pair[side]}\n" for pair in PAIRS))
    return prefix


def read(spec: str | list[str]) -> list[tuple[str, str]]:
    text = find_text(spec, "en", "fr")
    return list(text.pairs())


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_two_files_and_tab_separated_values(suffix: str) -> None:
    prefix = write_two("corpus/train.v2", suffix)
    assert read(prefix) == PAIRS
    assert read([f"{prefix}.en{suffix}", f"{prefix}.fr{suffix}"]) == PAIRS
    name = write(f"train.tsv{suffix}", "".join(f"{source}\t{target}\r\n" for source, target in PAIRS) + "\n")
    assert read(name) == [*PAIRS, ("", "")]


def test_names_of_columns_and_keys_say_which_is_which() -> None:
    for header in ("fr\ten", "FR\tEN", "French\tEnglish", "target\tsource", "tgt\tsrc"):
        assert read(write("train.tsv", f"{header}\nBonjour.\tHello.\n")) == [("Hello.", "Bonjour.")]
    for names in ("id,text_fr,text_en", "id,fr-sentence,en-sentence", "nr,target_text,source_text", "id,tgt,src"):
        pairs = read(write("a.csv", f'{names}\n7,"Oui, oui.",Yes.\n8,Non.,No.\n'))
        assert pairs == [("Yes.", "Oui, oui."), ("No.", "Non.")]
    for keys in (("source", "target"), ("src", "tgt"), ("en_text", "fr_text")):
        line = json.dumps({"id": 7, "score": 0.5, **dict(zip(keys, ("Hello.", "Bonjour."), strict=True))})
        assert read(write("train.jsonl", f"{line}\n")) == [("Hello.", "Bonjour.")]
    assert read(write("a", json.dumps({"source": "news", "en": "Yes.", "fr": "Oui."}))) == [("Yes.", "Oui.")]


@pytest.mark.parametrize("is_nested", [False, True])
def test_json_lines(is_nested: bool) -> None:
    objects = [{"fr": target, "en": source} for source, target in PAIRS]
    lines = [json.dumps({"id": 1, "translation": pair} if is_nested else {"id": 1, **pair}) for pair in objects]
    name = write("train.jsonl.gz", "\n".join(lines) + "\n\n")
    assert read(name) == [PAIRS[0], PAIRS[1], ("A dog runs.", "Un chien court.")]
    assert read(write("a.jsonl", json.dumps({"en": "a\nb", "fr": "c\ud800"}))) == [("a b", "c\ufffd")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "a\tb\nc\n", "a.tsv, line 2"),
        ("a.tsv", "a\tb\nc\td\tby me\n", "a.tsv, line 2"),
        ("a.tsv.gz", "1\t2\tby me\n", "a.tsv.gz, line 1"),
        ("a.csv", 'a;b\n"c;d\n', "a.csv, line 2"),
        ("a.csv", "a;b\n" * 20_000 + "c;d;e\n", "a.csv, line 20001"),
        ("a.jsonl", '{"en": "a"}\n', "a.jsonl, line 1"),
        ("a.jsonl", '{"en": "a", "fr": "b"}\n' * 2_000 + '{"en": "a"}', "a.jsonl, line 2001"),
        ("a.jsonl", '{"en": "a", "fr": "b"}\n{"en": ', "a.jsonl, line 2"),
        ("a.jsonl", "[" * 100_000, "a.jsonl, line 1"),
        ("a.jsonl", '{"en": "a", "fr": "b"}\n"a"\n', "a.jsonl, line 2"),
        ("a.tmx", "<tmx><body><tu><tuv lang='en'><seg>a</seg></tuv></tu>", "a.tmx: damaged TMX"),
        ("a.tmx", "<tmx>\n<tu><tuv></tu></tmx>", "a.tmx, unit from line 1"),
        ("a.txt", "1\n00:00:01,000 --> 00:00:02,000\nHello.\n", "a.txt"),
        ("a.txt", "WEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n", "a.txt"),
        ("a.xml", '<?xml version="1.0"?>\n<xliff/>\n', "a.xml: XML; convert"),
        ("a.sgm", '<refset setid="x">\n<seg id="1">Hello.</seg>\n', "a.sgm: XML; convert"),
    ],
)
def test_lines_that_are_no_pair(name: str, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(write(name, text))


def test_names_that_are_nearly_right() -> None:
    write_two("corpus/train")
    write("corpus/train.txt", "x\n")
    write("half.en", "x\n")
    os.mkfifo("pipe")
    for spec, message in (
        ("corpus/train.en", "corpus/train.en"),
        ("corpus", "corpus"),
        ("half", "half.fr"),
        ("corpus/train.txt", "corpus/train.txt"),
        ("c.tsv", "c.tsv"),
        (["corpus/train.en", "gone.fr"], "gone.fr"),
        (["corpus", "corpus/train.fr"], "corpus"),
        (["corpus/train.en", "corpus/train.en"], "the same file"),
        (["a", "b", "c"], "a, b, c"),
        (["pipe", "half.en"], "pipe"),
        ("pipe", "pipe"),
    ):
        with pytest.raises(UserError, match=message):
            find_text(spec, "en", "fr")


def test_languages_come_from_the_files_where_they_are_clear() -> None:
    write_two("train")
    write("named.tsv", "fr\ten\nBonjour.\tHello.\n")
    write("a.jsonl", '{"id": 3, "translation": {"de": "a", "en": "b"}}\n')
    assert find_text("train", "en", None).languages == ("en", "fr")
    assert find_text("train", None, "en").languages == ("fr", "en")
    assert find_text(["train.fr", "train.en"], None, None).languages == ("fr", "en")
    assert find_text("named.tsv", None, None).languages == ("fr", "en")
    assert find_text("a.jsonl", None, None).languages == ("de", "en")
    assert find_text("a.jsonl", None, "de").languages == ("en", "de")


def test_languages_that_are_not_clear_are_asked_for() -> None:
    write_two("train")
    write("plain.tsv", "Hello.\tBonjour.\n")
    for spec, languages, message in (
        ("train", (None, None), r"train"),
        ("train", ("de", None), r"--target-language"),
        ("plain.tsv", (None, None), "plain.tsv"),
        ("train.en", (None, None), "train.en"),
        ("gone", (None, None), "gone"),
        (["plain.tsv", "train.en"], (None, None), "plain.tsv, train.en"),
    ):
        with pytest.raises(UserError, match=message):
            find_text(spec, *languages)


def test_a_prefix_or_json_lines_of_one_language_would_be_their_own_translation() -> None:
    prefix = write_two("train")
    write("train.de", "x\n" * 3)
    table = write("a.jsonl", '{"en": "a", "fr": "b"}\n')
    for spec, languages in ((prefix, ("en", "en")), (table, ("en", "en")), (prefix, ("fr", "en", "en"))):
        with pytest.raises(UserError, match=rf"^{spec}.*(train\.en|for .*en)"):
            find_text(spec, *languages)


def test_two_files_or_two_columns_may_have_one_language() -> None:
    write("wrong.en", "a dgo\n")
    write("right.en", "a dog\n")
    assert list(find_text(["wrong.en", "right.en"], "en", "en").pairs()) == [("a dgo", "a dog")]
    for header in ("", "en\ten\n"):
        table = write("a.tsv", f"{header}a dgo\ta dog\n")
        assert list(find_text(table, "en", "en").pairs()) == [("a dgo", "a dog")]


@pytest.mark.parametrize("languages", [("de", "en"), ("en", "cs"), ("fr", "fr")])
def test_a_header_of_other_languages_is_refused(languages: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match=r"^train\.tsv"):
        find_text(write("train.tsv", "en\tfr\nHello.\tBonjour.\n"), *languages)


def test_a_first_line_that_names_no_languages_is_a_pair() -> None:
    first_lines = [("en\tFrench", ("de", "en")), ("as\tis", ("typo", "word")), ("English\tanglais", ("en", "fr"))]
    for line, languages in first_lines:
        text = find_text(write("train.tsv", f"{line}\n"), *languages)
        assert list(text.pairs()) == [tuple(line.split("\t"))]


def test_file_names_that_contradict_the_languages_are_refused() -> None:
    for spec, languages in (
        (["train.en", "train.de"], ("de", "en")),
        (["train.cs.gz", "train.fr"], ("de", "en")),
        (["a.fr", "a.de", "a.en"], ("de", "fr", "en")),
    ):
        with pytest.raises(UsageError, match=rf"^{', '.join(spec)}: .* expected {', '.join(languages)}"):
            find_text(spec, *languages)
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
    return "".join("\t".join(row) + "\n" for row in zip(*[column * 3 for column in columns], strict=True))


def test_columns_are_chosen_by_what_they_hold(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    ids, credits = [str(300 + number) for number in range(4)], [CREDIT.format(number) for number in range(4)]
    expected = list(zip(FRENCH * 3, GERMAN * 3, strict=True))
    for columns, shown in (
        ([ids, ["fr"] * 4, FRENCH, ids, ["de"] * 4, GERMAN], "fr in column 3, de in column 6"),
        ([ids, ["de"] * 4, GERMAN, ids, ["fr"] * 4, FRENCH], "fr in column 6, de in column 3"),
        ([GERMAN, FRENCH, credits], "fr in column 2, de in column 1"),
        ([credits, ENGLISH, FRENCH, ["2024-01-01"] * 4, GERMAN], "fr in column 3, de in column 5"),
        ([GERMAN, FRENCH], "fr in column 2, de in column 1"),
    ):
        assert list(find_text(write("pairs.txt", table(*columns)), "fr", "de").pairs()) == expected
        assert f"pairs.txt: {shown} of {len(columns)}" in caplog.messages[-1]


def test_without_frequent_words_columns_come_in_the_order_of_the_file() -> None:
    words = [["nuqneH", "Qapla'", "jIyaj", "HIja'"], ["wej", "cha'", "qo'", "yIDoghQo'"]]
    text = table([str(number) for number in range(4)], *words)
    assert list(find_text(write("a", text), "tlh", "xx-yy").pairs())[:4] == list(zip(*words, strict=True))


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_csv_dialects(delimiter: str, quoting: int) -> None:
    rows = [("en", "fr"), ("Yes, no; all|one.", "Oui."), ('She said "no".', "Elle a dit\nnon."), ("", "")]
    with Path("pairs").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=delimiter, quoting=quoting).writerows(rows)
    assert read("pairs") == [rows[1], ('She said "no".', "Elle a dit non."), ("", "")]
    write("quoted", "".join(f'"{source}"{delimiter}"{target}"\n' for source, target in PAIRS))
    assert read("quoted") == [PAIRS[0], PAIRS[1], ("A dog runs.", PAIRS[2][1])]


def test_quotation_marks_in_a_tsv_are_text() -> None:
    rows = [('"Go," he said.', '"Va", dit-il.'), ('"Yes."', '"Oui."'), ("a, b", "c, d")]
    assert read(write("a", "".join(f"{source}\t{target}\n" for source, target in rows))) == rows


@pytest.mark.parametrize("indent", [None, 2])
def test_json_lists_and_nulls(indent: int | None) -> None:
    lists = [["no", "non"], ["yes", None]]
    assert read(write("a.txt", json.dumps(lists, indent=indent))) == [("no", "non"), ("yes", "")]


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
    assert [(source.split(), target) for source, target in read(name)] == [
        ("The cat and I".split(), "Le chat & moi"),
        (["Only", "English"], ""),
    ]
    assert find_text(name, None, None).languages == ("fr", "en")
    with pytest.raises(UserError, match=r"memory.* de"):
        find_text(name, "en", "de")
    with pytest.raises(UsageError, match=r"memory: TMX.* alone"):
        find_text([name, write("b.txt", "x\n")], "en", "fr")


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


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ('{"en": "a", "fr": "b"}\n{"en": "', "line 2"),
        ("<tmx><tu><seg>", "unit"),
        ("a;b\n" * 20_000 + '"', "line 20001"),
    ],
)
def test_a_value_without_end_is_one_line_of_error(start: str, message: str) -> None:
    Path("bomb").write_bytes(gzip.compress(start.encode() + b"x" * (40 << 20)))
    tracemalloc.start()
    with pytest.raises(UserError, match=f"bomb, {message}"):
        read("bomb")
    assert tracemalloc.get_traced_memory()[1] < 160 << 20
    tracemalloc.stop()
