"""The content of a page. `test_page_browser.py` opens it in a browser, `test_translations.py` runs
its scripts."""

import json
import re
from statistics import fmean

import pytest

from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.errors import UsageError
from seq2seq_attn.export.page import export_page
from seq2seq_attn.export.tokens import describe_tokenizer
from seq2seq_attn.text.captions import find_captions
from seq2seq_attn.text.lines import read_lines
from seq2seq_attn.text.tokenizers.base import CharacterTokenizer
from seq2seq_attn.text.tokenizers.several import SentenceSource
from seq2seq_attn.text.tokenizers.vectors import VectorSource
from tests.cli.command_line import assert_fails
from tests.toy_run import make_toy_run, toy_config


def test_int8_makes_a_smaller_page(runs, tmp_path):
    sizes = {}
    for weights in ("fp32", "int8"):
        page = tmp_path / f"{weights}.html"
        options = ["-o", str(page), "--weights", weights]
        assert run_command(["export", str(runs[0].path), *options]) == 0
        sizes[weights] = page.stat().st_size
    assert sizes["fp32"] > sizes["int8"] + 10_000


def test_a_page_is_written_through_a_link_and_has_the_name_of_its_run(runs, tmp_path, monkeypatch):
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    link.symlink_to(page)
    monkeypatch.chdir(runs[0].path)
    assert run_command(["export", ".", "-o", str(link)]) == 0
    assert "<title>additive</title>" in page.read_text("utf-8")


def test_a_file_of_another_kind_is_refused(runs, capsys):
    assert_fails(capsys, "export", str(runs[0].path), "-o", "page.pdf", code=2, message="page.pdf")


def test_a_page_refuses_runs_of_different_languages(runs, tmp_path):
    back = make_toy_run(
        tmp_path / "back", toy_config(source_language="en", target_language="de"), is_reverse=True
    )
    with pytest.raises(UsageError, match="back"):
        export_page([runs[0], back], tmp_path / "page.html")


def test_the_curve_is_of_saved_translations(captions_page):
    text = captions_page.read_text("utf-8")
    [payload] = re.findall(r'type="application/json">(.*)</script>', text)
    sources = read_lines(find_captions(None, "de", "en")["test"].source)[:12]
    expected = {}
    for number, source in enumerate(sources):
        expected.setdefault(len(source.split()) // 3, []).append(number < 8)
    shares = [point["shares"] for point in json.loads(payload)["accuracy"]]
    assert shares == [[fmean(expected[key])] * 2 for key in sorted(expected)]


@pytest.mark.parametrize("source", [VectorSource(3), SentenceSource(CharacterTokenizer())])
def test_a_tokenizer_that_a_page_lacks_is_named(source):
    with pytest.raises(UsageError, match=source.name):
        describe_tokenizer(source)
