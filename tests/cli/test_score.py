"""`seq2seq score`: forced decoding of given pairs, line by line."""

import json
import math
import re

import pytest

from seq2seq_attn import load
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.files import write_lines
from seq2seq_attn.text.lines import read_lines
from tests.cli.command_line import assert_fails
from tests.toy_run import SOURCE, TARGET

GOLD = " ".join(f"{i}-{i}" for i in range(5))


@pytest.fixture(scope="module")
def root(module_path):
    """The pairs as files."""
    pairs = map("\t".join, zip(SOURCE, TARGET, strict=True))
    for name, lines in (
        ("source", SOURCE),
        ("target", TARGET),
        ("pairs.tsv", ["source\ttarget", *pairs]),
        ("links", [GOLD] * len(SOURCE)),
        ("marked", ["0-0 1p1 2?2 3-3 4?3 0p4"] * len(SOURCE)),
        ("first", ["0-0"] * len(SOURCE)),
        ("far", ["0-9", *["0-0"] * 4]),
        ("empty.tsv", []),
        ("damaged.tsv", ["src\ttgt", *["Hund\tdog"] * 20, "Hund"]),
        ("odd.tsv", ["src\ttgt", "Ein Hund\tA qux", " \tA dog", "Ein Hund\t"]),
        ("blank.tsv", ["src\ttgt", " \tA dog"]),
    ):
        write_lines(module_path / name, lines)
    return module_path


@pytest.fixture(autouse=True)
def _in_root(root, toy_runs, monkeypatch):
    monkeypatch.chdir(root)
    for name, run in (("additive", "words"), ("fixed", "fixed")):
        (root / name).unlink(missing_ok=True)
        (root / name).symlink_to(toy_runs[run].path)


FILES = "--source source --target target".split()


def score(capsys, *arguments, run="additive"):
    code = run_command(["score", "--run", run, "--device", "cpu", *arguments])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out.splitlines(), err


def test_a_line_for_each_pair_and_the_perplexity_on_stderr(capsys, root):
    lines, err = score(capsys, *FILES)
    expected = load(root / "additive", "cpu").score(SOURCE, TARGET)
    assert lines == [f"{pair.log_prob:.4f}\t{len(pair.tokens) + 1}" for pair in expected]
    num_tokens = sum(len(pair.tokens) + 1 for pair in expected)
    perplexity = math.exp(-sum(pair.log_prob for pair in expected) / num_tokens)
    assert f"5 pairs, {num_tokens} " in err
    assert f": {math.log(perplexity):.4f} " in err
    assert f"perplexity {perplexity:.4f}\n" in err
    alone, _ = score(capsys, "pairs.tsv", "--batch-size", "1")
    for line, line_alone in zip(lines, alone, strict=True):
        values = [float(value) for value in line.split("\t")]
        assert values == pytest.approx([float(each) for each in line_alone.split("\t")], abs=1e-3)


@pytest.mark.parametrize("table", ["ein Hund\ta dog", "source\ttarget\nein Hund\ta dog"])
def test_a_first_pair_that_may_be_a_header_is_logged(capsys, tmp_path, table):
    path = tmp_path / "pairs.tsv"
    path.write_text(f"{table}\n")
    lines, err = score(capsys, str(path), "--columns", "1,2")
    assert len(lines) == 1
    assert ("first pair: ['ein Hund', 'a dog']" in err) == ("target" not in table)


def test_json_holds_tokens_and_links(capsys, root):
    lines, _ = score(capsys, "pairs.tsv", "--format", "json")
    for line, pair in zip(lines, load(root / "additive", "cpu").score(SOURCE, TARGET), strict=True):
        found = json.loads(line)
        assert found["log_prob"] == pytest.approx(pair.log_prob, abs=1e-3)
        assert (found["tokens"], found["num_tokens"]) == (pair.tokens, len(pair.tokens) + 1)
        assert found["source_tokens"] == pair.source_tokens
        assert [tuple(link) for link in found["links"]] == pair.links()
        assert (found["unknown"], found["unknown_target"]) == ([], [])
    without, _ = score(capsys, "pairs.tsv", "--format", "json", run="fixed")
    assert json.loads(without[0])["links"] is None


def test_what_cannot_be_scored_as_it_is_is_counted(capsys):
    lines, err = score(capsys, "odd.tsv")
    assert [line.split("\t")[1] for line in lines] == ["3", "0", "1"]
    assert lines[1] == "0.0000\t0"
    assert "1 of 4" in err
    assert "1 of 3" in err
    assert "2 pairs, 4" in err
    assert "perplexity" not in score(capsys, "blank.tsv")[1]


def test_error_rate_against_given_links(capsys):
    _, err = score(capsys, *FILES, "--links", "links")
    found = re.findall(r"links(.*): AER (\d.\d+), precision (\d.\d+), recall (\d.\d+)", err)
    assert [assumption for assumption, *_ in found] == [
        "",
        ", with the weights of the next target step",
        ", with the weights of the previous step",
    ]
    _, err = score(capsys, *FILES, "--links", "first")  # no link is left one step earlier
    assert "nan" not in err
    assert "AER" in err


@pytest.mark.parametrize(("name", "line"), [("links", GOLD), ("marked", "0-0 1p1 2?2 3-3 4?3 0p4")])
def test_error_rate_is_that_of_the_alignment_file(capsys, tmp_path, name, line):
    """Och and Ney's formula, computed from the file that `--alignment` writes."""
    _, err = score(capsys, *FILES, "--links", name, "--alignment", str(tmp_path / "own"))
    shown = re.search(r"links: AER (\d.\d+), precision (\d.\d+), recall (\d.\d+)", err)
    possible = set(re.sub("[p?]", "-", line).split())
    sure = {link for link in line.split() if "-" in link}
    found = [set(links.split()) for links in read_lines(tmp_path / "own")]
    num_found = sum(map(len, found))
    num_sure = len(sure) * len(SOURCE)
    num_found_sure = sum(len(links & sure) for links in found)
    num_found_possible = sum(len(links & possible) for links in found)
    error_rate = 1 - (num_found_sure + num_found_possible) / (num_found + num_sure)
    expected = (error_rate, num_found_possible / num_found, num_found_sure / num_sure)
    assert tuple(map(float, shown.groups())) == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--source", "source"], 2, "--source FILE --target FILE"),
        (["pairs.tsv", *FILES], 2, "--source FILE --target FILE"),
        (["absent.tsv"], 1, "absent.tsv"),
        (["empty.tsv"], 1, "empty.tsv"),
        (["damaged.tsv"], 1, "damaged.tsv: 1 damaged"),
        ([*FILES, "--links", "empty.tsv"], 1, "empty.tsv"),
        ([*FILES, "--links", "far"], 1, "far, line 1"),
        ([*FILES, "--links", "links", "--run", "fixed"], 2, "--links links"),
        ([*FILES, "--alignment", "-"], 2, "--alignment"),
        ([*FILES, "--format", "xml"], 2, "--format xml"),
    ],
)
def test_wrong_usage(capsys, arguments, code, message):
    run = [] if "--run" in arguments else ["--run", "additive"]
    assert_fails(capsys, "score", *run, *arguments, code=code, message=message)
