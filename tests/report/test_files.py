"""The files of a report: which are written, and what a link among them does; every score once in
CSV, and text that stays text."""

import csv
import io
import json
from dataclasses import replace

import pytest

from seq2seq_attn.evaluation.names import named_arms
from seq2seq_attn.files import read_json
from seq2seq_attn.report.files import csv_text, write_report_files
from tests.report.conftest import report_of

COLUMNS = (
    "test_set num_concatenated length lower upper num_pairs is_thin measure kind name num_seeds "
    "score sd low high difference p_value p_corrected kept kept_low kept_high"
)
HOSTILE = 'a,"b"\n<&|%$#_{}~^\\ $\\frac{1}'


def test_plots_lie_beside_the_first_file_and_bear_its_name(tmp_path, one_system):
    report = report_of(one_system)
    files = {"json": tmp_path / "out.json", "report": tmp_path / "pages/out.md"}
    write_report_files(report, files, "png", str)
    assert "](../bleu-by-length.out.png)" in files["report"].read_text("utf-8")
    assert (tmp_path / "bleu-by-length.out.png").read_bytes().startswith(b"\x89PNG")
    values = read_json(files["json"])
    assert values == json.loads(json.dumps(report.data))


@pytest.mark.parametrize("is_named", [True, False])
def test_a_link_in_a_run_is_replaced_and_a_named_one_followed(tmp_path, one_system, is_named):
    # a run may be a stranger's, with links out of it
    files = {"json": tmp_path / "link.json", "report": tmp_path / "link.md"}
    for link in files.values():
        link.symlink_to(tmp_path / f"real{link.suffix}")
    write_report_files(report_of(one_system), files, None, str, is_named=is_named)
    for link in files.values():
        assert link.is_symlink() == (tmp_path / f"real{link.suffix}").exists() == is_named


# ---- CSV ----


def read_rows(scores):
    """The rows by length, metric, kind and name."""
    rows = {}
    for row in csv.DictReader(io.StringIO(csv_text([scores]))):
        assert list(row) == COLUMNS.split()
        key = row["length"], row["measure"], row["kind"], row["name"]
        assert key not in rows
        rows[key] = row
    return rows


def test_csv_has_a_row_for_each_score(two_systems):
    rows = read_rows(two_systems)
    assert len(rows) == 2 * len(two_systems.whole.scores) * (len(two_systems.buckets) + 1)
    row = rows["12-18", "bleu", "run", "none"]
    bucket = two_systems.buckets[2]
    assert (row["lower"], row["upper"], row["num_pairs"]) == ("12", "19", str(len(bucket.bucket)))
    score = bucket.scores["bleu"][1]
    assert float(row["score"]) == score.interval.value
    assert float(row["low"]) == score.interval.low
    assert float(row["difference"]) == score.bootstrap.difference
    assert float(row["p_value"]) == score.bootstrap.p_value
    assert float(row["kept_high"]) == score.retention.high
    thin = rows["6-11", "bleu", "run", "none"]
    assert (thin["is_thin"], thin["p_value"], row["is_thin"]) == ("True", "", "False")
    first = rows["all", "bleu", "run", "additive"]
    assert first["num_seeds"] == "1"
    assert first["difference"] == first["lower"] == ""


def test_csv_has_rows_for_arms(grouped):
    rows = read_rows(grouped)
    for name, num_seeds in (("additive", "2"), ("none", "3"), ("initial", "1")):
        assert rows["all", "bleu", "arm", name]["num_seeds"] == num_seeds
    deviation = float(rows["all", "bleu", "arm", "none"]["sd"])
    assert deviation == grouped.whole.scores["bleu"][1].deviation


@pytest.mark.parametrize("name", [HOSTILE, "=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)"])
def test_names_survive_csv_and_are_no_formulas(two_systems, name):
    names = [name, "none"]
    rows = read_rows(replace(two_systems, runs=names, arms=named_arms(names)))
    shown = name if name == HOSTILE else f"'{name}"
    assert {row["name"] for row in rows.values()} == {shown, "none"}
    assert float(rows["all", "bleu", "run", "none"]["difference"]) < 0  # numbers stay numbers
