"""The page's scripts, under node, translate lines as the package does: greedy search and beams, in
fp32 and int16."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from seq2seq_attn import load
from seq2seq_attn.__main__ import run as run_command
from seq2seq_attn.data.line_facts import LineFacts
from seq2seq_attn.export import page as page_module
from seq2seq_attn.export.page import export_page
from seq2seq_attn.run import Run
from seq2seq_attn.text.captions import find_captions
from seq2seq_attn.text.lines import read_lines
from tests.report.test_web import node
from tests.toy_run import SOURCE, make_toy_run, toy_config

DRIVER, WEB = Path(__file__).with_name("page.mjs"), Path(page_module.__file__).parent / "web"
LINES = [*SOURCE, *(" ".join(line.split()[::-1]) for line in SOURCE), "das Xylophon", "Zwei", ""]


def check(
    run,
    lines,
    beam_sizes,
    weights="fp32",
    prefix="",
):
    """In fp32, all translations are equal; in int16 995 of 1,000, as hypotheses that are close
    change places."""
    page = run.path.with_name(f"{run.path.name}-{weights}.html")
    export_page([run], page, weights)
    translator = load(run.path, "cpu")
    ids = translator.target_vocab.ids_of(translator.target_tokenizer.tokenize(prefix))
    tasks = ""
    for size in beam_sizes:
        tasks += json.dumps([lines, {"run": 0, "beamSize": size, "prefix": ids}]) + "\n"
    command = [node(), str(DRIVER), str(page), str(WEB)]
    done = subprocess.run(command, input=tasks, capture_output=True, text=True)
    for size, answer in zip(beam_sizes, done.stdout.splitlines(), strict=True):
        expected = translator.translate(lines, beam_size=size, prefix=prefix)
        num_different = 0
        for best, (text, log_prob) in zip(expected, json.loads(answer), strict=True):
            is_close = abs(best.log_prob - log_prob) <= 1e-4
            num_different += text != best.text and not is_close
            if weights == "fp32":
                assert log_prob == pytest.approx(best.log_prob, abs=1e-4, rel=3e-5)
        assert num_different <= (0 if weights == "fp32" else len(lines) / 200)


@pytest.mark.parametrize(
    ("tokenizer", "attention", "output"),
    [
        ("spacy", "bilinear", "copy"),
        pytest.param("sentencepiece", "additive", "softmax", marks=pytest.mark.slow),
        pytest.param("characters", "fixed", "softmax", marks=pytest.mark.slow),
    ],
)
def test_a_toy_translates_equally(tmp_path, tokenizer, attention, output):
    config = toy_config(tokenizer=tokenizer, attention=attention, max_length=200)
    config.model.output.name = output
    check(make_toy_run(tmp_path / "run", config), LINES, (1, 4))


@pytest.mark.parametrize("unk", ["copy", pytest.param("forbid", marks=pytest.mark.slow)])
def test_unknown_words_are_written_as_configured(tmp_path, unk):
    config = toy_config(tokenizer="spacy")
    config.search.unk = unk
    check(make_toy_run(tmp_path / "run", config), LINES, (3,))


def test_a_prefix_does_not_count_toward_the_length_limit(tmp_path):
    config = toy_config(tokenizer="spacy")
    config.search.length_penalty = 1.0
    config.search.max_length_ratio = 0.3
    run = make_toy_run(tmp_path / "run", config)
    check(run, SOURCE, (3,), prefix="Three children sit on a bench and eat")


def test_sentences_of_a_line_are_translated_one_by_one_as_in_the_package(tmp_path):
    facts = LineFacts(one_sentence=True)
    run = make_toy_run(tmp_path / "run", toy_config(tokenizer="spacy"), facts=facts)
    check(run, [" ".join(SOURCE), "  ".join(SOURCE[:2]), "Dr. Hund rennt. Zwei!", ". . ."], (1, 3))


@pytest.mark.slow
@pytest.mark.parametrize("config", ["demo", "demo-fixed", "multi30k-fast"])
def test_trained_runs_translate_a_thousand_sentences_equally(tmp_path, config):
    if config == "multi30k-fast" and "SEQ2SEQ_MULTI30K_DIR" not in os.environ:
        pytest.skip("no SEQ2SEQ_MULTI30K_DIR here, the folder with the files of Multi30k")
    run, updates = Run(tmp_path / "run"), 100 if config == "multi30k-fast" else 400
    options = ["--run-dir", str(run.path), "--set", f"train.max_updates={updates}"]
    assert run_command(["train", "-c", config, *options]) == 0
    if config == "multi30k-fast":
        file = Path(os.environ["SEQ2SEQ_MULTI30K_DIR"], "test_2016_flickr.de.gz")
        lines = gzip.decompress(file.read_bytes()).decode("utf-8").splitlines()
    else:
        lines = [*read_lines(find_captions(None, "de", "en")["test"].source)]
    check(run, lines, (1, 5))
    check(run, lines, (1, 5), "int16")
