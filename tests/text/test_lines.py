"""A text file as lines: encodings, compression, line ends, and damage."""

import bz2
import gzip
import lzma
import sys
from pathlib import Path

import pytest

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.lines import aligned_lines, count_lines, iter_lines, read_lines


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name, content):
    path = Path(name)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress, bz2.compress])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("\ufeffeins\nzwei\n", ["eins", "zwei"]),
        ("eins\n\ufeffzwei", ["eins", "\ufeffzwei"]),
        ("\ufeff\n", [""]),
        ("", []),
        ("\n", [""]),
        ("a\n\n", ["a", ""]),
        # str.splitlines would cut at each of these
        (
            "so\u2028\u0085\x0b w\r\n\nzwei\rhalb\r\r\n ende ",
            ["so\u2028\u0085\x0b w", "", "zwei\rhalb\r", " ende "],
        ),
        # a block of 2 ** 20 characters ends between the carriage return and the line feed
        ("ab" + "Ö\r\n" * 350_000 + "ß", ["abÖ", *["Ö"] * 349_999, "ß"]),
    ],
)
def test_lines_of_any_encoding_and_compression(content, lines, compress):
    for data in (content.encode(), content.removeprefix("\ufeff").encode("utf-16")):
        path = write("x.xz", compress(data))
        assert read_lines(path) == lines
        assert count_lines(path) == len(lines)


def test_lines_are_read_as_they_are_asked_for():
    lines = iter_lines(write("x.gz", gzip.compress(b"a\n" * 3_000_000 + b"\xff")))
    assert [next(lines) for _ in range(2)] == ["a", "a"]


def test_damaged_and_absent_files_are_named():
    whole = gzip.compress(b"line\n" * 1000)
    cut = [
        compress(b"line\n" * 1000)[:-9] for compress in (gzip.compress, lzma.compress, bz2.compress)
    ]
    for data in (
        *cut,
        whole[:-4] + b"\0\0\0\0",
        whole[:12] + b"\xff" * 9 + whole[21:],
        b"PK\3\4",
        b"%PDF-1",
        b"7z\xbc\xaf",
        b"eins\rzwei\r",  # an old Mac's
    ):
        with pytest.raises(UserError, match="damaged"):
            read_lines(write("damaged", data))
    with pytest.raises(UserError, match="absent"):
        read_lines(Path("absent"))
    if sys.version_info < (3, 14):
        with pytest.raises(UserError, match=r"x.*decompress"):
            read_lines(write("x", b"\x28\xb5\x2f\xfd\0\0"))


@pytest.mark.parametrize(
    ("data", "line", "advice"),
    [
        ("Öl\nb\n".encode() + b"M\xe4nner\n", 3, "iconv -c"),
        ("いろは\n".encode("shift_jis"), 1, "iconv.*SHIFT_JIS"),
        ("猫が好き\n犬\n".encode("utf-16-be"), 1, "iconv -f UTF-16BE"),
        (b"one\ntwo\0\nthree\n", 2, "unpack"),
        ((b"x" * 99 + b"\n") * 30_000 + b"cut \xc3", 30_001, "iconv"),
    ],
    ids=str,
)
def test_advice_for_bytes_that_are_not_utf8(data, line, advice):
    with pytest.raises(UserError, match=rf"^x, line {line}: .*{advice}"):
        count_lines(write("x", data))


def test_different_line_counts_name_both():
    # torchtext zips the files: 5 and 4 lines with one blank gave 3 examples and no error
    paths = [write("a.de", b"1\n2\n\n4\n5\n"), write("a.en", b"1\n2\n4\n5\n")]
    with pytest.raises(UserError, match=r"a\.de has 5 .*a\.en has 4"):
        list(aligned_lines(paths))
