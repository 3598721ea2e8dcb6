"""CSV and LaTeX: every score once, and text that stays text."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from seq2seq_attn.metrics.by_length import MIN_PAIRS
from seq2seq_attn.report.exports import COLUMNS, csv_text, escape_latex
from tests.report.conftest import report_of, score_systems

HOSTILE = 'a,"b"\n<&|%$#_{}~^\\ $\\frac{1}'


def read(text):
    rows = list(csv.DictReader(io.StringIO(text)))
    assert all(list(row) == list(COLUMNS) for row in rows)
    return rows


def test_a_row_for_each_score(two_systems):
    rows = read(csv_text([two_systems]))
    measures, parts = len(two_systems.scores), len(two_systems.buckets) + 1
    assert len(rows) == 2 * measures * parts
    [row] = [row for row in rows if (row["length"], row["measure"], row["name"]) == ("12-18", "bleu", "none")]
    score = two_systems.buckets[2].scores["bleu"][1]
    assert (row["lower"], row["upper"], row["num_pairs"]) == ("12", "19", str(len(two_systems.buckets[2].bucket)))
    assert (float(row["score"]), float(row["low"])) == (score.interval.value, score.interval.low)
    assert (float(row["difference"]), float(row["p_value"])) == (score.bootstrap.difference, score.bootstrap.p_value)
    assert float(row["kept_high"]) == score.retention.high
    [first] = [row for row in rows if (row["length"], row["measure"], row["name"]) == ("all", "bleu", "additive")]
    assert (first["kind"], first["difference"], first["lower"], first["num_seeds"]) == ("run", "", "", "1")
    assert first["is_thin"] == str(two_systems.num_pairs < MIN_PAIRS)
    few = replace(two_systems, num_pairs=20)
    assert {row["is_thin"] for row in read(csv_text([few])) if row["length"] == "all"} == {"True"}


def test_arms_have_rows_of_their_own(grouped):
    rows = [row for row in read(csv_text([grouped])) if row["kind"] == "arm" and row["length"] == "all"]
    assert [(row["measure"], row["name"], row["num_seeds"]) for row in rows[:3]] == [
        *(("bleu", "additive", "2"), ("bleu", "none", "3"), ("bleu", "initial", "1"))
    ]
    assert float(rows[1]["sd"]) == grouped.scores["bleu"][1].spread.standard_deviation


def test_names_survive_csv():
    assert {row["name"] for row in read(csv_text([score_systems([HOSTILE, "none"])]))} == {HOSTILE, "none"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b & 5 % of $x^2$", r"a\_b \& 5 \% of \$x\textasciicircum{}2\$"),
        ("Größe, façade, ångström, Łódź", "Größe, façade, ångström, Łódź"),
        ("± <|>", r"$\pm$ \textless{}\textbar{}\textgreater{}"),
        ("日\n\x07本Жħ", r"U+65E5  U+672CU+0416U+0127"),
        ("\\input{x}", r"\textbackslash{}input\{x\}"),
    ],
)
def test_text_stays_text_in_latex(text, expected):
    escaped = escape_latex(text)
    assert escaped.isprintable()
    assert escaped == expected


def test_latex_has_a_table_of_scores_and_one_by_length(two_systems, grouped):
    for scores in (two_systems, grouped, score_systems([HOSTILE, "none"])):
        text = report_of(scores).latex
        tables = re.findall(r"\\begin\{tabular\}\{(l+r+)\}\n\\toprule\n(.*?)\\bottomrule", text, re.DOTALL)
        assert len(tables) == text.count(r"\caption{") == text.count(r"\begin{table}") == 2
        assert re.findall(r"\\label\{(.*)\}", text) == ["tab:scores-made-up", "tab:lengths-made-up"]
        for columns, body in tables:
            lines = [line for line in body.splitlines() if line != r"\midrule"]
            assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {len(columns)}
            assert all(line.endswith(r" \\") for line in lines)
    text = report_of(two_systems).latex
    assert text.count(escape_latex(two_systems.signatures["bleu"])) == 2
    difference = f"{-two_systems.scores['bleu'][1].bootstrap.difference:.1f}"
    assert f"& $-${difference} &" in text
    assert f"-{difference}" not in text.replace("$-$", "")
    assert " -- &" in text  # no p-value of a thin bucket
    assert "6-11" in text


@pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)"])
def test_no_text_in_csv_is_a_formula(name):
    rows = read(csv_text([score_systems([name, "none"])]))
    assert {row["name"] for row in rows} == {f"'{name}", "none"}
    assert any(float(row["difference"]) < 0 for row in rows if row["difference"])  # numbers stay numbers


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex (Debian: texlive-latex-recommended)")
def test_latex_compiles(tmp_path):
    scores = score_systems([HOSTILE, "Größe, façade, Łódź, 日本"])
    (tmp_path / "t.tex").write_text(report_of(scores).latex, encoding="utf-8")
    document = r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{t}\end{document}"
    (tmp_path / "doc.tex").write_text(document, encoding="ascii")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "doc.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
