"""Several runs loaded as one translator, and the runs that cannot be."""

import re
import shutil
from pathlib import Path

import pytest

from seq2seq_attn import load
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import list_files
from tests.toy_run import SOURCE, make_toy_run, toy_config
from tests.translate.conftest import assert_same

LINES = [*SOURCE, "", "Ein qux ✈", "Hund " * 70]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    for seed, name in enumerate(("a", "b"), start=4):
        make_toy_run(root / name, seed=seed)
    make_toy_run(root / "same-as-a", seed=4)
    make_toy_run(root / "fixed", toy_config(attention="fixed"), seed=6)
    make_toy_run(root / "fixed-too", toy_config(attention="fixed"), seed=7)
    return root


def test_equal_runs_translate_as_one(runs):
    alone = load(runs / "a", "cpu").translate(LINES)
    for named in ([runs / "a"], [str(runs / "a"), runs / "same-as-a"]):
        assert_same(load(named, "cpu").translate(LINES), alone, rel=1e-6)


def test_the_first_run_gives_what_a_call_leaves_open(runs, tmp_path):
    config = toy_config()
    config.search.beam_size = 1
    config.search.max_length_ratio = 0.1
    config.search.max_length_extra = 0
    make_toy_run(tmp_path / "short", config, seed=4)
    first = load([tmp_path / "short", runs / "b"], "cpu")
    second = load([runs / "b", tmp_path / "short"], "cpu")
    assert (first.search, second.search.beam_size) == (config.search, 3)
    assert len(first.translate(["Hund"])[0].tokens) == 1
    assert len(first.translate(["Hund"], max_length_ratio=5, beam_size=3)[0].tokens) > 1
    assert len(second.translate(["Hund"])[0].tokens) > 1


def test_one_member_with_attention_gives_the_ensemble_attention(runs):
    both = load([runs / "fixed", runs / "a"], "cpu")
    assert both.has_attention
    assert both.translate(SOURCE[:1])[0].attention is not None
    assert both.translate(["✈ Hund"], unk="copy")[0].text


def test_fixed_vectors_alone_give_no_attention(runs):
    both = load([runs / "fixed", runs / "fixed-too"], "cpu")
    assert not both.has_attention
    assert both.translate(SOURCE[:1])[0].attention is None
    with pytest.raises(UsageError, match="unk='copy'"):
        both.translate(SOURCE, unk="copy")


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_precision_is_that_of_the_members(runs, precision):
    log_probs = []
    for named in ([runs / "a", runs / "same-as-a"], runs / "a"):
        translations = load(named, "cpu", precision=precision).translate(SOURCE)
        log_probs.append([one.log_prob for one in translations])
    assert log_probs[0] == pytest.approx(log_probs[1], rel=1e-5)


@pytest.mark.parametrize(
    "file", ["source.tokenizer.json", "target.sentencepiece.model", "target.vocab"]
)
def test_other_tokenizers_and_vocabularies_are_refused(runs, tmp_path, file):
    other = shutil.copytree(runs / "a", tmp_path / "other")
    with (other / file).open("ab") as changed:
        changed.write(b"\n")
    list_files(other, [other / file])
    with pytest.raises(UsageError, match=re.escape(file)):
        load([runs / "a", other])


def test_no_run_and_the_same_run_twice_are_refused(runs):
    with pytest.raises(UsageError, match="at least one"):
        load([])
    with pytest.raises(UsageError, match="twice"):
        load([runs / "a", runs / "b" / ".." / "a"])
    with pytest.raises(UserError, match="nowhere"):
        load([runs / "a", runs / "nowhere"])
