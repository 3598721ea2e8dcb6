"""`seq2seq translate`: output line i translates input line i; what is written beside the text; what
is refused."""

import dataclasses
import gzip
import io
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.__main__ import run as run_cli
from seq2seq_attn.api.streams import read_chunks
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.lines import MAX_LINE_BYTES
from seq2seq_attn.translate.translator import Translator
from tests.toy_requests import translate
from tests.toy_run import SOURCE, TARGET


@pytest.fixture
def run(toy_runs):
    return toy_runs["toy"]


class SlowStream(io.BytesIO):
    """A stream that has five bytes at a time."""

    def read1(self, size=-1):
        return super().read1(5)


@pytest.fixture
def stdin(monkeypatch):
    def give(data, stream=io.BytesIO):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream(data)))

    return give


# ---- line i out is line i in ----

HOSTILE = [
    b"",
    b"   ",
    b"\x00",
    b"Ein \x00 Hund",
    bytes(range(1, 10)) + b"\x0b\x0c" + bytes(range(14, 32)) + b"x",
    "Ein\u2028Hund\u2029rennt\x85.".encode(),
    "\u200f\u202eשלום\u202c ‏ Hund".encode(),
    "Ein 🐕‍🦺 rennt 👨‍👩‍👧‍👦 ☺️".encode(),
    b"\xff\xfe kein UTF-8 \xc3",
    b"\xed\xa0\x80 surrogate",
    b"a\rb\x1b[31mred\x1b[0m",
    "\ufeffWiese".encode(),
    "e\u0301".encode() * 40,
    b"<unk> <pad> <bos> <eos> ||| @@ \xe2\x96\x81",
    b"Wiese" * 60,
]
"""Lines that drop, shift or break other tools. None holds a line feed or ends in a carriage
return."""


def test_two_thousand_hostile_lines(run, tmp_path, stdin, capfdbinary, caplog):
    generator = np.random.default_rng(0)
    kinds = [line.encode() for line in SOURCE] + HOSTILE
    lines = [kinds[number] for number in generator.integers(0, len(kinds), 2_000)]
    lines[700] = b"Hund " * 10_000
    translator = load(run.path)
    expected = {}
    for line in set(lines):
        [alone] = translator.translate([line.decode(errors="replace")], beam_size=1)
        expected[line] = alone.text
    line_ends = generator.choice([b"\n", b"\r\n"], len(lines)).tolist()
    data = b"".join(map(bytes.__add__, lines, line_ends))
    stdin(data.removesuffix(b"\n"))
    translate(run=run.path, beam_size=1, alignment=tmp_path / "links")
    out = capfdbinary.readouterr().out.decode()
    assert out.split("\n") == [*(expected[line] for line in lines), ""]
    assert len(out.splitlines()) == 2_000  # no character in a line ends it for any reader
    assert len((tmp_path / "links").read_bytes().split(b"\n")) == 2_001
    num_invalid = sum(line.startswith((b"\xff", b"\xed\xa0")) or b"\0" in line for line in lines)
    assert f"standard input: {num_invalid} of 2000" in caplog.text


@pytest.mark.parametrize(
    ("data", "num_lines"),
    [
        (b"", 0),
        (b"\n", 1),
        (b"\n\n", 2),
        (b"Hund", 1),
        (b"Hund\n", 1),
        (b"Hund\r\n\r\nWiese\r", 3),
        (b"\r", 1),
        (b"\xef\xbb\xbfHund\n", 1),
        (b"\xef\xbb\xbf", 0),
    ],
)
def test_as_many_lines_out_as_in(run, stdin, capfdbinary, data, num_lines):
    stdin(data)
    translate(input="-", run=run.path, beam_size=1)
    assert capfdbinary.readouterr().out.count(b"\n") == num_lines


def test_carriage_returns_as_line_ends_are_refused(run, stdin):
    stdin(b"Der Hund\rDie Katze\r")
    with pytest.raises(UserError, match="standard input: lines end in carriage returns"):
        translate(input="-", run=run.path, beam_size=1)


def test_texts_files_and_stdin_are_the_same(run, tmp_path, stdin, capfdbinary):
    data = "".join(f"{line}\n" for line in SOURCE).encode()
    (tmp_path / "in").write_bytes(data)
    (tmp_path / "in.gz").write_bytes(gzip.compress(data.decode().encode("utf-16")))
    translate(SOURCE, run=run.path)
    expected = capfdbinary.readouterr().out
    texts = [translation.text for translation in load(run.path).translate(SOURCE)]
    assert expected.decode().split("\n") == [*texts, ""]
    translate(["\n".join(SOURCE)], run=run.path)
    assert capfdbinary.readouterr().out == expected
    translate(input=tmp_path / "in", run=run.path)
    assert capfdbinary.readouterr().out == expected
    translate(input=tmp_path / "in.gz", output=tmp_path / "out.gz", run=run.path)
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == expected
    stdin(data)
    translate(run=run.path, output=tmp_path / "in")  # over an input that is not the one being read
    assert (tmp_path / "in").read_bytes() == expected
    assert capfdbinary.readouterr().out == b""


@pytest.mark.parametrize(
    ("encoding", "advice"),
    [("utf-16-be", "iconv -f UTF-16BE"), ("cp1252", "iconv -f WINDOWS-1252")],
)
def test_other_encodings_keep_the_lines_and_are_named(
    run, tmp_path, stdin, capfdbinary, caplog, encoding, advice
):
    data = "Der Kaffee – 5 €\nHund\n".encode(encoding)
    (tmp_path / "in").write_bytes(data)
    translate(input=tmp_path / "in", run=run.path, beam_size=1)
    assert capfdbinary.readouterr().out.count(b"\n") == data.count(b"\n")
    assert re.search(rf"in: \d of \d lines .*{advice}", caplog.text)
    caplog.clear()
    stdin(data)
    translate(run=run.path, beam_size=1)
    assert "iconv" in caplog.text


# ---- streaming ----


def test_a_line_longer_than_what_is_read_at_once_stays_one_line():
    data = b"\xef\xbb\xbf" + b"x" * 200_000 + b"\nshort\n" + b"y" * 70_000
    lines = list(chain.from_iterable(read_chunks(io.BytesIO(data), "long")))
    assert [len(line) for line in lines] == [200_000, 5, 70_000]


def run_command(run, *options, **streams):
    command = f"{sys.executable} -m seq2seq_attn translate --run {run.path} --device cpu".split()
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}
    return subprocess.Popen([*command, *options], env=environment, **{**pipes, **streams})


class LongLines:
    """A stream of lines, the second and the last of which are too long."""

    def __init__(self):
        long = [b"a" * (1 << 16)] * (MAX_LINE_BYTES // (1 << 16) + 3)
        self.parts = iter([b"one\n", *long, b"\nthree\n", *long])

    def read1(self, size):
        return next(self.parts, b"")


@pytest.mark.parametrize(("name", "shown"), [("mine.txt", "mine.txt"), ("-", "standard input")])
def test_a_line_of_many_megabytes_is_an_empty_line(caplog, name, shown):
    lines = [line for chunk in read_chunks(LongLines(), name) for line in chunk]
    assert lines == ["one", "", "three", ""]
    starts = [message.partition(":")[0] for message in caplog.messages]
    assert starts == [f"{shown}, line 2", f"{shown}, line 4"]


def test_an_answer_comes_before_the_next_line_is_asked_for(run):
    """Somebody at the other end of two pipes writes a line and waits for its translation."""
    expected = load(run.path).translate(SOURCE, beam_size=1)
    with run_command(run, "--beam-size=1") as process:
        for line, answer in zip(SOURCE, expected, strict=True):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline() == f"{answer.text}\n".encode()
        process.stdin.close()
        assert process.wait(timeout=300) == 0


def test_a_closed_pipe_is_quiet(run, tmp_path):
    with run_command(run, f"--alignment={tmp_path / 'links'}") as process:
        process.stdin.write(b"Ein Hund\n")
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"Ein Hund\n" * 50)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=300) == 0
    assert list(tmp_path.iterdir()) == []  # links of half of the lines are none


def test_a_full_disk_on_standard_output_is_named(run):
    with open("/dev/full", "wb") as full, run_command(run, "Ein Hund", stdout=full) as process:
        assert "standard output" in process.stderr.read().decode().splitlines()[-1]
        assert process.wait(timeout=300) == 1


# ---- what is written beside the text ----


def test_n_best_is_written_as_moses_has_it(run, capfdbinary):
    lines = [SOURCE[0], "", SOURCE[1]]
    options = {"n_best": 2, "beam_size": 3, "length_penalty": 1.0}
    translate(lines, run=run.path, **options)
    rows = capfdbinary.readouterr().out.decode().split("\n")[:-1]
    expected = []
    for number, translations in enumerate(load(run.path).translate_n_best(lines, **options)):
        for each in translations:
            expected.append([number, each.text, each.log_prob, each.score])
    assert [row[0] for row in expected] == [0, 0, 1, 2, 2]
    for row, (number, text, log_prob, score) in zip(rows, expected, strict=True):
        written = row.split(" ||| ")
        assert written[:2] == [str(number), text]
        assert [float(value) for value in written[2:]] == pytest.approx([log_prob, score], abs=1e-6)


def test_separators_in_a_text_are_escaped_in_n_best_lists(run, monkeypatch, capfdbinary):
    translation = dataclasses.replace(load(run.path).translate(["Hund"])[0], text="a ||| b \\n")
    monkeypatch.setattr(Translator, "translate_lines", lambda *_, **__: [[translation]])
    translate(["Hund"], run=run.path, n_best=2, beam_size=2)
    [row] = capfdbinary.readouterr().out.decode().splitlines()
    assert row.split(" ||| ")[1] == "a &#124;&#124;&#124; b \\n"


def test_numbers_and_a_glossary_go_on_from_one_read_to_the_next(run, stdin, tmp_path, capfd):
    (tmp_path / "terms.tsv").write_bytes(b"Hund\twater\r\n")
    stdin(b"Hund\nWiese\nHund\n", SlowStream)
    options = {"n_best": 2, "beam_size": 2, "max_length_ratio": 9.0}
    translate(run=run.path, glossary=tmp_path / "terms.tsv", **options)
    lines = capfd.readouterr().out.splitlines()
    assert "".join(line[0] for line in lines) == "001122"
    has_term = [re.search(r"\bwater\b", line) is not None for line in lines]
    assert has_term == [True, True, False, False, True, True]


def test_links_run_between_the_words_of_the_two_files(run, tmp_path):
    lines = [SOURCE[0], "", "😀  Zwei ½ Männer"]
    translate(lines, run=run.path, alignment=tmp_path / "links", output=tmp_path / "out")
    texts = (tmp_path / "out").read_text("utf-8").split("\n")
    links = [line.split() for line in (tmp_path / "links").read_text().split("\n")]
    assert [bool(words) for words in links] == [True, False, True, False]
    for line, text, words in zip(lines, texts, links, strict=False):
        assert len(set(words)) == len(words)
        for word in words:
            source, target = map(int, word.split("-"))
            assert source < len(line.split())
            assert target < len(text.split())


def test_attention_is_written_as_arrays_without_pickle(run, tmp_path):
    lines = [SOURCE[0], "", SOURCE[1]]
    translate(lines, run=run.path, attention=tmp_path / "a.npz", output=tmp_path / "out")
    expected = load(run.path).translate(lines)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert len(arrays) == 6
        for number in (0, 2):
            translation = expected[number]
            np.testing.assert_array_equal(arrays[f"attention_{number}"], translation.attention)
            assert arrays[f"source_tokens_{number}"].tolist() == translation.source_tokens
            tokens = arrays[f"target_tokens_{number}"].tolist()
            assert tokens[: len(translation.tokens)] == translation.tokens


BEGINS = {
    ".html": b"<!doctype html",
    ".png": b"\x89png",
    ".svg": b"<?xml",
    ".pdf": b"%pdf",
    ".npz": b"pk",
}


@pytest.mark.parametrize("command", ["translate", "score"])
def test_every_kind_of_attention_file_is_written(run, tmp_path, command):
    """Characters that no picture shows are drawn as escapes."""
    line = "Ein\ufeff Hund \x1b[31m rennt\x08 \x00 \u202e!"
    (tmp_path / "in").write_text(f"{line}\n", "utf-8")
    (tmp_path / "pairs.tsv").write_text(f"src\ttgt\n{SOURCE[0]}\t{TARGET[0]}\n", "utf-8")
    subject = {"translate": f"-i {tmp_path}/in", "score": f"{tmp_path}/pairs.tsv"}[command]
    files = " ".join(f"--attention {tmp_path}/maps{suffix}" for suffix in BEGINS)
    assert run_cli(f"{command} {subject} --run {run.path} --device cpu {files}".split()) == 0
    ElementTree.parse(tmp_path / "maps.svg")  # well-formed
    for suffix, begin in BEGINS.items():
        assert (tmp_path / f"maps{suffix}").read_bytes().lower().startswith(begin), suffix


def test_a_picture_that_fails_leaves_the_translations(run, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("seq2seq_attn.api.writers.write_figure", fail)
    with pytest.raises(UserError, match=r"a\.png"):
        translate(["Hund"], run=run.path, attention=tmp_path / "a.png", output=tmp_path / "out")
    assert (tmp_path / "out").read_text("utf-8").count("\n") == 1


def test_a_failure_leaves_no_half_written_file(run, tmp_path, stdin):
    class Broken(SlowStream):
        def read1(self, size=-1):
            if self.tell():
                raise OSError("the disk is gone")
            return super().read1(size)

    stdin(b"Hund\nWiese\n", Broken)
    files = {"output": "out", "attention": "a.png", "alignment": "links"}
    outputs = {option: tmp_path / name for option, name in files.items()}
    with pytest.raises(UserError, match="the disk is gone"):
        translate(run=run.path, **outputs)
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_a_file_or_run_is_translated_with_a_hint(run, tmp_path, caplog):
    name = tmp_path / "in.de"
    name.touch()
    texts = [str(name), "Hund", "x" * 5000, str(run.path)]
    translate(texts, run=run.path, output=tmp_path / "out")
    assert caplog.text.count(f"-i {name}") == 1
    assert caplog.text.count(f"--run {run.path}") == 1


# ---- what is refused ----


@contextmanager
def redirected(descriptor, name, file):
    """A standard stream is a file, as in `seq2seq translate < FILE`."""
    saved = os.dup(descriptor)
    os.dup2(file.fileno(), descriptor)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, name, file)
            yield
    finally:
        os.dup2(saved, descriptor)
        os.close(saved)


@pytest.mark.parametrize(("name", "stream"), [("stdin", "input"), ("stdout", "output")])
def test_closed_streams_are_named(run, stdin, monkeypatch, name, stream):
    stdin(b"Hund\n")
    monkeypatch.setattr(sys, name, None)
    with pytest.raises(UserError, match=f"standard {stream}"):
        translate(run=run.path)


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["Hund"], {"input": "lines.txt"}, "-i lines.txt"),
        ([], {"input": ["-", "-"]}, "-i - -i -"),
        (["Hund", "Zwei M\udce4nner"], {}, "invalid UTF-8"),
        (["Hund"], {"prefix": "Zwei M\udce4nner"}, "invalid UTF-8"),
        (["Hund"], {"prefix": 5}, "prefix=5"),
        (["Hund"], {"output": "x.npz", "alignment": "./x.npz"}, "-o and --alignment: .*x.npz"),
        (["Hund"], {"alignment": "-"}, "-o and --alignment"),
        (["Hund"], {"attention": "a.gif"}, "--attention a.gif"),
        ([], {"input": ""}, "^-i ''"),
        (["Hund"], {"output": ""}, "^-o ''"),
        ([], {}, "-i FILE"),
    ],
)
def test_options_that_cannot_be(run, monkeypatch, texts, options, message):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    with pytest.raises(UsageError, match=message):
        translate(texts, run=run.path, **options)


def test_reading_from_a_terminal_is_said(run, stdin, monkeypatch, caplog):
    stdin(b"Hund\n")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    with caplog.at_level("INFO"):
        translate(input="-", run=run.path)
    assert "Ctrl-D" in caplog.text


@pytest.mark.parametrize("option", ["output", "alignment", "attention"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_no_output_replaces_the_file_that_is_read(run, tmp_path, option, link):
    source = tmp_path / "in.npz"
    source.write_text("Hund\n")
    output = tmp_path / "other.npz"
    link(source, output)
    with pytest.raises(UsageError, match=r"other.npz"):
        translate(input=source, run=run.path, **{option: output})
    with source.open() as file, redirected(0, "stdin", file):
        with pytest.raises(UsageError, match=r"other.npz"):
            translate(run=run.path, **{option: output})
    assert source.read_text() == "Hund\n"


@pytest.mark.parametrize(("name", "message"), [("in", r"^-o"), ("links", r"^-o and --alignment")])
def test_standard_output_goes_to_a_file_of_its_own(run, tmp_path, name, message):
    (tmp_path / "in").write_text("Hund\n")
    with (tmp_path / name).open("a") as appended, redirected(1, "stdout", appended):
        with pytest.raises(UsageError, match=message):
            translate(input=tmp_path / "in", run=run.path, alignment=tmp_path / "links")


def test_standard_output_by_its_device_name_is_appended_to(run, tmp_path):
    """`-o /dev/stdout >> FILE`: FILE keeps what it had."""
    path = tmp_path / "appended"
    path.write_text("old\n")
    (tmp_path / "stdout").symlink_to(path)
    with path.open("a") as appended, redirected(1, "stdout", appended):
        translate(["Hund"], run=run.path, output=tmp_path / "stdout")
    lines = path.read_text().splitlines()
    assert (lines[0], len(lines)) == ("old", 2)


@pytest.mark.parametrize(
    ("option", "name"),
    [("output", "out"), ("alignment", "out"), ("attention", "out.npz"), ("attention", "out.png")],
)
def test_an_output_that_is_a_link_is_written_through(run, tmp_path, option, name):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / name).write_text("old")
    link = tmp_path / name
    link.symlink_to(Path("real") / name)
    translate(["Hund"], run=run.path, **{option: link})
    assert link.is_symlink()
    assert (tmp_path / "real" / name).read_bytes() not in (b"", b"old")
    (tmp_path / "real").rename(tmp_path / "moved")
    with pytest.raises(UserError, match=name):
        translate(["Hund"], run=run.path, **{option: link})


@pytest.mark.parametrize("option", ["alignment", "attention"])
def test_a_fixed_vector_has_no_attention_to_write(toy_runs, option):
    with pytest.raises(UsageError, match=f"--{option} x.npz"):
        translate(["Hund"], run=toy_runs["fixed"].path, **{option: Path("x.npz")})


@pytest.mark.parametrize("option", ["output", "alignment", "attention"])
@pytest.mark.parametrize("name", ["nowhere/out.npz", "file/out.npz", "folder.npz", "/proc/out.npz"])
def test_outputs_that_cannot_be_written_are_refused_first(tmp_path, option, name):
    (tmp_path / "file").touch()
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(UserError, match=name):
        translate(["Hund"], run=tmp_path / "no run", **{option: tmp_path / name})
    assert not (tmp_path / "nowhere").exists()


def test_devices_are_written_and_stay(run):
    translate(["Hund"], run=run.path, output="/dev/null")
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("name", ["nowhere.txt", "damaged.gz"])
def test_inputs_that_cannot_be_read_are_named(run, tmp_path, name):
    (tmp_path / "damaged.gz").write_bytes(gzip.compress(os.urandom(5000))[:3000])
    path = tmp_path / name
    with pytest.raises(UserError, match=name):
        translate(input=path, run=run.path, output=tmp_path / "out")
