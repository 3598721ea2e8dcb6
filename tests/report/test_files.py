"""The files of a report: which are written, which are refused, and what a link among them does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seq2seq_attn.errors import UsageError
from seq2seq_attn.evaluation.scoring import Settings, score_sets
from seq2seq_attn.evaluation.sets import EvaluationSet
from seq2seq_attn.evaluation.translations import SetTranslations, SystemTexts
from seq2seq_attn.report.files import ReportFiles
from seq2seq_attn.report.pages import Report
from seq2seq_attn.runtime.environment import describe_environment
from tests.report.html_reports import QUICK

REFERENCES = ["A dog runs.", "A cat sleeps in the grass."]


def write(files: ReportFiles, references: list[str] = REFERENCES) -> Report:
    """The report of a perfect run, written to files."""
    one = EvaluationSet("ref", references, references)
    settings = Settings("5", resampling=QUICK, length_of="reference")
    scored = score_sets([one], {"a": [SetTranslations(references)]}, settings=settings)
    report = Report(scored, [{"name": "a"}], describe_environment([], "cpu"))
    files.write(report, [one], [SystemTexts([SetTranslations(references)])])
    return report


def test_plots_lie_beside_the_first_file_and_bear_its_name(tmp_path: Path) -> None:
    report = write(ReportFiles(tmp_path / "out.json", tmp_path / "pages/out.md", "png"))
    page = (tmp_path / "pages/out.md").read_text(encoding="utf-8")
    assert "](../bleu-by-length.out.png)" in page
    assert (tmp_path / "bleu-by-length.out.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8")) == json.loads(json.dumps(report.data))


@pytest.mark.parametrize(("is_in_run_dir", "is_link"), [(False, True), (True, False)])
def test_a_link_in_a_run_is_replaced_and_a_named_one_followed(
    tmp_path: Path, is_in_run_dir: bool, is_link: bool
) -> None:
    # a run may be a stranger's, with links out of it
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    write(ReportFiles(json=tmp_path / "link.json", is_in_run_dir=is_in_run_dir))
    assert (tmp_path / "link.json").is_symlink() == is_link
    assert (tmp_path / "real.json").exists() == is_link


@pytest.mark.parametrize("part", ["json", "csv", "latex"])
def test_no_part_replaces_an_input(tmp_path: Path, part: str) -> None:
    (tmp_path / "input").write_text("A dog.\n", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "input")
    for name in ("input", "link"):
        with pytest.raises(UsageError, match=f"^--{part}: .*{name}"):
            ReportFiles(**{part: tmp_path / name}).check([tmp_path / "input"])


def test_a_run_without_maps_makes_a_page_that_stands_alone(tmp_path: Path) -> None:
    write(ReportFiles(page=tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert '"maps":[[null,null]]' in page.replace(" ", "")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]
