"""Reading parallel text, and the audit."""

import bz2
import gzip
import lzma
import sys
import tracemalloc

import pytest

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.corpus import count_lines, iter_lines, read_lines, read_pairs


def write(path, content: bytes):
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["x.de", "x.de.gz"])
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("\ufeffeins\nzwei\n", ["eins", "zwei"]),
        ("eins\n\ufeffzwei", ["eins", "\ufeffzwei"]),
        ("\ufeff\n", [""]),
        ("", []),
        ("\n", [""]),
        ("a", ["a"]),
        ("a\n\n", ["a", ""]),
        # str.splitlines would cut at each of these
        (
            "so\u2028\u0085\x0b\x0c\x1c w\r\n\nzwei\rhalb\n ende ",
            ["so\u2028\u0085\x0b\x0c\x1c w", "", "zwei\rhalb", " ende "],
        ),
    ],
)
def test_lines_end_at_newlines_only_and_a_byte_order_mark_is_no_text(tmp_path, name, content, lines):
    path = write(tmp_path / name, content.encode())
    assert read_lines(path) == lines
    assert count_lines(path) == len(lines)


def test_invalid_utf8_and_nul_name_file_and_line(tmp_path):
    with pytest.raises(UserError, match=r"bad\.de, line 3"):
        read_lines(write(tmp_path / "bad.de", "ä\nb\n".encode() + b"M\xe4nner\n"))
    with pytest.raises(UserError, match=r"x\.de, line 2"):
        read_lines(write(tmp_path / "x.de", b"ein\nzw\0ei\n"))
    many = write(tmp_path / "bad.en", (b"x" * 99 + b"\n") * 30_000 + b"cut \xc3")
    with pytest.raises(UserError, match=r"bad\.en, line 30001"):
        count_lines(many)


def test_lines_are_read_as_they_are_asked_for(tmp_path):
    lines = iter_lines(write(tmp_path / "x.gz", b"a\n" * 3_000_000 + b"\xff"))
    assert [next(lines) for _ in range(2)] == ["a", "a"]


def test_unreadable_files(tmp_path):
    with pytest.raises(UserError, match=r"none\.de: no such file"):
        read_lines(tmp_path / "none.de")
    whole = gzip.compress(b"line\n" * 1000)
    for cut in (whole[: len(whole) // 2], whole[:-4] + b"\0\0\0\0", whole[:12] + b"\xff" * 9 + whole[21:]):
        (tmp_path / "cut.de.gz").write_bytes(cut)
        with pytest.raises(UserError, match=r"cut\.de\.gz"):
            read_lines(tmp_path / "cut.de.gz")


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress, lambda data: data])
def test_the_first_bytes_tell_the_compression(tmp_path, compress):
    path = tmp_path / "x.xz"
    path.write_bytes(compress("Öl\nein\n".encode()))
    assert read_lines(path) == ["Öl", "ein"]
    damaged = compress(b"line\n" * 1000)
    path.write_bytes(damaged[: len(damaged) // 2])
    if damaged[:4] != b"line":
        with pytest.raises(UserError, match=r"x\.xz: cannot be read"):
            read_lines(path)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="reads zstd")
def test_files_that_are_not_read_are_named(tmp_path):
    for data, message in (
        (b"\x28\xb5\x2f\xfd\0\0", "zstd.*unzstd"),
        (b"PK\3\4\0\0", "zip"),
        (b"%PDF-1.4\n", "PDF"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
    ):
        (tmp_path / "x.txt").write_bytes(data)
        with pytest.raises(UserError, match=rf"x\.txt: .*{message}"):
            read_lines(tmp_path / "x.txt")


def test_lines_of_old_macs(tmp_path):
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / "x").write_bytes("Café\rzwei\r\rvier\r".encode(encoding))
        assert read_lines(tmp_path / "x") == ["Café", "zwei", "", "vier"]


def test_the_advice_for_other_damage(tmp_path):
    for data, advice in (
        ("Öl\nM".encode() + b"\xe4nner\n", "other lines are UTF-8.*iconv -c"),
        ("いろは\n".encode("shift_jis"), "iconv.*SHIFT_JIS"),
        ("猫が好き\n犬\n".encode("utf-16-be"), "iconv -f UTF-16BE"),
        (b"one\ntwo\0\nthree\n", "NUL.*tr -d"),
    ):
        with pytest.raises(UserError, match=rf"x, line \d: .*{advice}"):
            read_lines(write(tmp_path / "x", data))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("tail", [b"", b"\n"])
def test_a_line_without_end_is_one_line_of_error(tmp_path, compress, tail):
    bomb = compress(b"short\n" + b"x" * (40 << 20) + tail)
    assert len(bomb) < 100_000
    (tmp_path / "bomb").write_bytes(bomb)
    tracemalloc.start()
    with pytest.raises(UserError, match=r"bomb, line 2: longer than 16 MiB"):
        read_lines(tmp_path / "bomb")
    assert tracemalloc.get_traced_memory()[1] < 60 << 20
    tracemalloc.stop()


def test_different_line_counts_name_both(tmp_path):
    # torchtext zips the files: 5 and 4 lines with one blank gave 3 examples and no error
    de, en = write(tmp_path / "a.de", b"1\n2\n\n4\n5\n"), write(tmp_path / "a.en", b"1\n2\n4\n5\n")
    with pytest.raises(UserError, match=r"a\.de has 5 lines and .*a\.en has 4"):
        read_pairs(de, en)
