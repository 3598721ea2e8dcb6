"""Parallel text as people keep it, and what they are told where they are nearly right."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.parallel import check_suffixes, find_languages, find_text

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
def test_two_files(suffix: str) -> None:
    prefix = write_two("corpus/train.v2", suffix)
    assert read(prefix) == PAIRS
    assert read([f"{prefix}.en{suffix}", f"{prefix}.fr{suffix}"]) == PAIRS


def test_a_prefix_takes_plain_files_before_gzipped_ones() -> None:
    prefix = write_two("train", ".gz")
    write("train.en", "plain\n" * 3)
    assert [str(path) for path in find_text(prefix, "en", "fr").paths] == ["train.en", "train.fr.gz"]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_tab_separated_values(suffix: str) -> None:
    name = write(f"train.tsv{suffix}", "".join(f"{source}\t{target}\r\n" for source, target in PAIRS) + "\n")
    assert read(name) == [*PAIRS, ("", "")]


def test_a_header_of_languages_says_which_column_is_which() -> None:
    for header in ("fr\ten", "FR\tEN", "French\tEnglish", "target\tsource", "tgt\tsrc"):
        assert read(write("train.tsv", f"{header}\nBonjour.\tHello.\n")) == [("Hello.", "Bonjour.")]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_json_lines(suffix: str, is_nested: bool) -> None:
    objects = [{"fr": target, "en": source} for source, target in PAIRS]
    lines = [json.dumps({"id": 1, "translation": one} if is_nested else {"id": 1, **one}) for one in objects]
    name = write(f"train.jsonl{suffix}", "\n".join(lines) + "\n\n")
    assert read(name) == [PAIRS[0], PAIRS[1], ("A dog runs.", "Un chien court."), ("", "")]


def test_json_keys_may_name_the_sides() -> None:
    for keys in (("source", "target"), ("src", "tgt")):
        line = json.dumps(dict(zip(keys, ("Hello.", "Bonjour."), strict=True)))
        assert read(write("train.jsonl", f"{line}\n")) == [("Hello.", "Bonjour.")]


def test_a_line_end_in_json_ends_no_line() -> None:
    assert read(write("a.jsonl", json.dumps({"en": "a\nb", "fr": "c\ud800"}))) == [("a b", "c\ufffd")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.tsv", "a\tb\nc\n", "a.tsv, line 2: no tab"),
        ("a.tsv", "a\tb\nc\td\tby me\n", "a.tsv, line 2: 3 columns"),
        ("a.tsv.gz", "c\td\tby me\n", "a.tsv.gz, line 1: 3 columns"),
        ("a.jsonl", '{"en": "a"}\n', "a.jsonl, line 1: no text for 'fr'"),
        ("a.jsonl", '{"en": "a", "fr": "b"}\n{"en": ', "a.jsonl, line 2: not a JSON object"),
        ("a.jsonl", "[" * 100_000, "a.jsonl, line 1: not a JSON object"),
        ("a.jsonl", '["a", "b"]\n', "a.jsonl, line 1: expected an object"),
    ],
)
def test_lines_that_are_no_pair(name: str, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(write(name, text))


def test_names_that_are_nearly_right() -> None:
    write_two("corpus/train")
    write("corpus/train.fr.gz", "x\n")
    write("corpus/train.txt", "x\n")
    write("tables/b.tsv", "x\ty\n")
    write("half.en", "x\n")
    for spec, message in (
        ("corpus/train.en", "corpus/train.en: one side only"),
        ("corpus/train.fr.gz", "corpus/train.fr.gz"),
        ("corpus", "corpus: a folder.* corpus/train"),
        ("tables", "tables: a folder.* tables/b.tsv"),
        ("half", "half.fr: no such file.* half.en exists"),
        ("corpus/train.txt", "corpus/train.txt: expected a prefix"),
        ("c.tsv", "c.tsv: no such file"),
        ("gone", "gone.en: no such file"),
        (["corpus/train.en", "gone.fr"], "gone.fr: no such file"),
        (["corpus", "corpus/train.fr"], "corpus: a folder, not a file"),
        (["corpus/train.en", "corpus/train.en"], "the same file"),
        (["a", "b", "c"], "expected a prefix or two files"),
    ):
        with pytest.raises(UserError, match=message):
            find_text(spec, "en", "fr")


def test_languages_come_from_the_files_where_they_are_clear() -> None:
    write_two("train")
    write("named.tsv", "fr\ten\nBonjour.\tHello.\n")
    write("a.jsonl", '{"id": 3, "translation": {"de": "a", "en": "b"}}\n')
    assert find_languages("train", "en", None) == ("en", "fr")
    assert find_languages("train", None, "en") == ("fr", "en")
    assert find_languages(["train.fr", "train.en"], None, None) == ("fr", "en")
    assert find_languages("named.tsv", None, None) == ("fr", "en")
    assert find_languages("a.jsonl", None, None) == ("de", "en")
    assert find_languages("a.jsonl", None, "de") == ("en", "de")
    assert find_languages("not/read", "en", "fr") == ("en", "fr")


def test_languages_that_are_not_clear_are_asked_for() -> None:
    write_two("train")
    write("plain.tsv", "Hello.\tBonjour.\n")
    for spec, given, message in (
        ("train", (None, None), r"train: its languages are not clear \(found en, fr\); add --source-language and"),
        ("train", ("de", None), r"\(found en, fr\); add --target-language"),
        ("plain.tsv", (None, None), "plain.tsv: its languages are not clear; add --source-language and --target-lang"),
        ("train.en", (None, None), "drop the '.en' to name both: train"),
        (".", (None, None), "a folder; name the files in it"),
        ("gone", (None, None), "gone: no such file, and no gone.LANGUAGE"),
        (["plain.tsv", "train.en"], (None, None), "plain.tsv, train.en: its languages are not clear"),
    ):
        with pytest.raises(UserError, match=message):
            find_languages(spec, *given)


def test_a_pipe_is_called_a_pipe() -> None:
    write("a.fr", "chien\n")
    os.mkfifo("pipe")
    for spec in (["pipe", "a.fr"], ["a.fr", "pipe"], "pipe"):
        with pytest.raises(
            UserError, match=r"^pipe: a pipe or device; text is read more than once, so name a regular f"
        ):
            read(spec)


def test_a_prefix_or_json_lines_of_one_language_would_be_their_own_translation() -> None:
    prefix = write_two("train")
    write("train.de", "x\n" * 3)
    table = write("a.jsonl", '{"en": "a", "fr": "b"}\n')
    for spec, languages in ((prefix, ("en", "en")), (table, ("en", "en")), (prefix, ("fr", "en", "en"))):
        with pytest.raises(UsageError, match=rf"^{spec}: 'en' is the target's language and a source's, .* name a file"):
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
    text = find_text(write("train.tsv", "en\tfr\nHello.\tBonjour.\n"), *languages)
    expected = f"^train.tsv: its first line names the languages en, fr, not {', '.join(languages)}; name those with "
    with pytest.raises(UsageError, match=expected):
        list(text.pairs())


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
        with pytest.raises(
            UsageError, match=rf"^{', '.join(spec)}: .* expected {', '.join(languages)}; put the files in"
        ):
            check_suffixes(spec, *languages)
    for spec, languages in (
        (["train.de", "train.en"], ("de", "en")),
        (["train.de", "train.en"], ("de", "en-GB")),
        (["train.pt_BR", "train.en"], ("pt", "en")),
        (["train.de", "train.en"], ("de", "tlh")),
        (["train.en", "train.txt"], ("de", "en")),
        (["x.en", "y.en"], ("typo", "word")),
        ("train", ("de", "en")),
    ):
        check_suffixes(spec, *languages)
