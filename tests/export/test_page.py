"""The content of a page. `test_page_browser.py` opens it in a browser, `test_translations.py` runs
its scripts."""

import json
import re
import shutil
from statistics import fmean

import pytest

from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.errors import UsageError
from seq2seq_attn.export.page import export_page, kept_values
from seq2seq_attn.export.tokens import describe_run, describe_tokenizer
from seq2seq_attn.files import write_listed
from seq2seq_attn.run import Run
from seq2seq_attn.text.tokenizers.base import CharacterTokenizer
from seq2seq_attn.text.tokenizers.several import SentenceSource
from seq2seq_attn.text.tokenizers.vectors import VectorSource
from tests.cli.command_line import assert_fails
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config


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


def payload(page):
    [text] = re.findall(r'type="application/json">(.*)</script>', page.read_text("utf-8"))
    return json.loads(text)


def test_the_curve_is_of_saved_translations(captions, captions_page):
    expected = {}
    for number, source in enumerate(captions.read_set("test").source):
        expected.setdefault(len(source.split()) // 3, []).append(number < 8)
    points = payload(captions_page)["accuracy"]
    for point, (_, right) in zip(points, sorted(expected.items()), strict=True):
        assert point["shares"] == [fmean(right)] * 2
        assert point["count"] == len(right)


@pytest.fixture(scope="module")
def own(module_path):
    """A run on text of one's own, with saved translations of its test set that have mistakes."""
    for side, lines in (("de", SOURCE), ("en", TARGET)):
        (module_path / f"text.{side}").write_text("\n".join([*lines, ""]), "utf-8")
    text = str(module_path / "text")
    splits = {"train": text, "valid": text, "test": {"test": text}}
    config = toy_config(corpus="files", data_dir=str(module_path), **splits)
    run = make_toy_run(module_path / "own", config)
    run.hyps_dir.mkdir(exist_ok=True)
    content = "".join(f"{line} wrong\n" for line in TARGET)
    write_listed(run.hyps_dir / "test.txt", content.encode())
    return run


def test_a_page_of_any_runs_has_their_test_sentences_and_curve(own):
    values = kept_values([own, own])
    assert dict(values["sentences"]) == dict(zip(SOURCE, TARGET, strict=True))
    assert values["measure"] == "chrF"  # as no translation equals its reference
    for point in values["accuracy"]:
        assert 0.5 < point["shares"][0] == point["shares"][1] < 1


def test_a_page_of_runs_with_different_test_sets_has_none(own, captions):
    assert kept_values([own, captions])["sentences"] == []
    assert kept_values([own, captions])["accuracy"] == []


def test_a_page_without_saved_translations_has_no_curve(own, tmp_path):
    copy = Run(shutil.copytree(own.path, tmp_path / "copy"))
    shutil.rmtree(copy.hyps_dir)
    assert kept_values([own, copy])["accuracy"] == []
    assert kept_values([own, copy])["sentences"]


def test_a_page_reads_no_translations_through_a_link_out_of_the_run(own, tmp_path):
    copy = Run(shutil.copytree(own.path, tmp_path / "copy"))
    shutil.rmtree(copy.hyps_dir)
    copy.hyps_dir.symlink_to(own.hyps_dir)
    assert kept_values([copy])["accuracy"] == []


@pytest.mark.parametrize("source", [VectorSource(3), SentenceSource(CharacterTokenizer())])
def test_a_tokenizer_that_a_page_lacks_is_named(source):
    with pytest.raises(UsageError, match=source.name):
        describe_tokenizer(source)


def test_a_page_says_which_search_options_it_lacks(tmp_path, caplog):
    config = toy_config()
    lacking = {"coverage_penalty": 0.2, "no_repeat_ngram": 3, "method": "diverse"}
    search = config.search.model_copy(update=lacking)
    run = make_toy_run(tmp_path / "run", config.model_copy(update={"search": search}))
    export_page([run], tmp_path / "page.html")
    for option, value in lacking.items():
        assert f"search.{option}={value}" in caplog.text


def test_a_page_names_the_language_that_the_run_reads(tmp_path):
    run = make_toy_run(tmp_path / "run", toy_config(source_languages=["fr"]))
    assert describe_run(run)["source"]["language_name"] == "French"
