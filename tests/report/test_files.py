"""The files of a report: which are written, which are refused, and what a link among them does;
every score once in CSV and LaTeX, and text that stays text."""

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from seq2seq_attn.evaluation.names import named_arms
from seq2seq_attn.evaluation.results import SetScores
from seq2seq_attn.evaluation.scoring import Settings, score_sets
from seq2seq_attn.evaluation.test_sets import EvaluationSet
from seq2seq_attn.evaluation.translations import SetTranslations
from seq2seq_attn.metrics.by_length import MIN_PAIRS, Bucket
from seq2seq_attn.report.files import (
    COLUMNS,
    csv_text,
    escape_latex,
    latex_text,
    write_report_files,
)
from seq2seq_attn.report.pages import Report
from seq2seq_attn.runtime.environment import describe_environment
from tests.report.conftest import QUICK, report_of, score_systems

REFERENCES = ["A dog runs.", "A cat sleeps in the grass."]
HOSTILE = 'a,"b"\n<&|%$#_{}~^\\ $\\frac{1}'


def write(*files: Path, is_named: bool = True) -> Report:
    """The report of a perfect run, written to files."""
    settings = Settings("5", resampling=QUICK, length_of="reference")
    scored = score_sets(
        [EvaluationSet("ref", REFERENCES, REFERENCES)],
        {"a": [SetTranslations(REFERENCES)]},
        settings=settings,
    )
    report = Report(scored, [{"name": "a"}], describe_environment([], "cpu"))
    write_report_files(
        report, dict(zip(("json", "report"), files, strict=False)), "png", str, is_named=is_named
    )
    return report


def test_plots_lie_beside_the_first_file_and_bear_its_name(tmp_path):
    report = write(tmp_path / "out.json", tmp_path / "pages/out.md")
    assert "](../bleu-by-length.out.png)" in (tmp_path / "pages/out.md").read_text(encoding="utf-8")
    assert (tmp_path / "bleu-by-length.out.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(report.data)
    )


@pytest.mark.parametrize("is_named", [True, False])
def test_a_link_in_a_run_is_replaced_and_a_named_one_followed(tmp_path, is_named):
    # a run may be a stranger's, with links out of it
    links = [tmp_path / "link.json", tmp_path / "link.md"]
    for link in links:
        link.symlink_to(tmp_path / f"real{link.suffix}")
    write(*links, is_named=is_named)
    for link in links:
        assert link.is_symlink() == (tmp_path / f"real{link.suffix}").exists() == is_named


# ---- CSV ----


def read_rows(*sets: SetScores) -> list[dict[str, str]]:
    rows = list(csv.DictReader(io.StringIO(csv_text(sets))))
    assert all(list(row) == list(COLUMNS) for row in rows)
    return rows


def test_a_row_for_each_score(two_systems):
    rows = read_rows(two_systems)
    assert len(rows) == 2 * len(two_systems.whole.scores) * (len(two_systems.buckets) + 1)
    by_key = {(row["length"], row["measure"], row["name"]): row for row in rows}
    row = by_key["12-18", "bleu", "none"]
    bucket = two_systems.buckets[2]
    score = bucket.scores["bleu"][1]
    assert (row["lower"], row["upper"], row["num_pairs"]) == ("12", "19", str(len(bucket.bucket)))
    assert (float(row["score"]), float(row["low"])) == (score.interval.value, score.interval.low)
    assert float(row["difference"]) == score.bootstrap.difference
    assert float(row["p_value"]) == score.bootstrap.p_value
    assert float(row["kept_high"]) == score.retention.high
    assert by_key["6-11", "bleu", "none"]["p_value"] == ""  # thin
    first = by_key["all", "bleu", "additive"]
    assert (first["kind"], first["num_seeds"]) == ("run", "1")
    assert first["difference"] == first["lower"] == ""
    assert first["is_thin"] == str(two_systems.num_pairs < MIN_PAIRS)
    few = replace(two_systems.whole, bucket=Bucket(0, None, np.arange(20)))
    rows = read_rows(replace(two_systems, whole=few, buckets=[]))
    assert {row["is_thin"] for row in rows} == {"True"}


def test_arms_have_rows_of_their_own(grouped):
    rows = [row for row in read_rows(grouped) if row["kind"] == "arm" and row["length"] == "all"]
    assert [row["measure"] for row in rows[:3]] == ["bleu"] * 3
    assert [row["name"] for row in rows[:3]] == ["additive", "none", "initial"]
    assert [row["num_seeds"] for row in rows[:3]] == ["2", "3", "1"]
    assert float(rows[1]["sd"]) == grouped.whole.scores["bleu"][1].deviation


def test_names_survive_csv_and_are_no_formulas(two_systems):
    for name in (HOSTILE, "=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)"):
        rows = read_rows(replace(two_systems, runs=[name, "none"], arms=named_arms([name, "none"])))
        assert {row["name"] for row in rows} == {name if name == HOSTILE else f"'{name}", "none"}
        assert any(
            float(row["difference"]) < 0 for row in rows if row["difference"]
        )  # numbers stay numbers


# ---- LaTeX ----


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b & 5 % of $x^2$", r"a\_b \& 5 \% of \$x\textasciicircum{}2\$"),
        ("Größe, façade, ångström, Łódź", "Größe, façade, ångström, Łódź"),
        ("± <|>", r"$\pm$ \textless{}\textbar{}\textgreater{}"),
        ("日\n\x07本Жħ", r"U+65E5 U+672CU+0416U+0127"),
        ("\\input{x}", r"\textbackslash{}input\{x\}"),
    ],
)
def test_text_stays_text_in_latex(text, expected):
    assert escape_latex(text) == expected


def test_latex_has_a_table_of_scores_and_one_by_length(two_systems, grouped):
    for scores in (two_systems, grouped, score_systems([HOSTILE, "none"])):
        text = latex_text(report_of(scores))
        tables = re.findall(
            r"\\begin\{tabular\}\{(l+r+)\}\n\\toprule\n(.*?)\\bottomrule", text, re.DOTALL
        )
        assert len(tables) == text.count(r"\caption{") == text.count(r"\begin{table}") == 2
        assert re.findall(r"\\label\{(.*)\}", text) == ["tab:scores-made-up", "tab:lengths-made-up"]
        for columns, body in tables:
            lines = [line for line in body.splitlines() if line != r"\midrule"]
            assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines} == {len(columns)}
            assert all(line.endswith(r" \\") for line in lines)
    text = latex_text(report_of(two_systems))
    assert text.count(escape_latex(two_systems.signatures["bleu"])) == 2
    assert f"& $-${-two_systems.whole.scores['bleu'][1].bootstrap.difference:.1f} &" in text
    assert " -- &" in text  # no p-value of a thin bucket
    assert "6-11" in text  # no minus


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="needs pdflatex (Debian: texlive-latex-recommended)"
)
def test_latex_compiles(tmp_path):
    scores = score_systems([HOSTILE, "Größe, façade, Łódź, 日本"])
    (tmp_path / "t.tex").write_text(latex_text(report_of(scores)), encoding="utf-8")
    document = (
        r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{t}\end{document}"
    )
    (tmp_path / "doc.tex").write_text(document, encoding="ascii")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "doc.tex"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
