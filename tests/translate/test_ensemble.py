"""Several runs loaded as one translator, and the runs that cannot be."""

import re
import shutil

import pytest

from seq2seq_attn import load
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import list_files
from tests.toy_run import SOURCE, make_toy_run, toy_config
from tests.translate.conftest import assert_same

LINES = [*SOURCE, "", "Ein qux ✈", "Hund " * 70]


@pytest.fixture(scope="module")
def runs(module_path):
    make_toy_run(module_path / "a", seed=4)
    make_toy_run(module_path / "same-as-a", seed=4)
    make_toy_run(module_path / "b", seed=5)
    make_toy_run(module_path / "fixed", toy_config(attention="fixed"), seed=6)
    make_toy_run(module_path / "fixed-too", toy_config(attention="fixed"), seed=7)
    return module_path


@pytest.mark.parametrize("precision", ["auto", "bf16", "int8"])
def test_equal_runs_translate_as_one(runs, precision):
    alone = load(runs / "a", "cpu", precision=precision).translate(LINES)
    both = load([str(runs / "a"), runs / "same-as-a"], "cpu", precision=precision)
    assert_same(both.translate(LINES), alone)


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


@pytest.mark.parametrize(
    ("names", "error", "match"),
    [
        ([], UsageError, "at least one"),
        (["a", "b/../a"], UsageError, "twice"),
    ],
)
def test_no_run_and_the_same_run_twice_are_refused(runs, names, error, match):
    with pytest.raises(error, match=match):
        load([runs / name for name in names])
