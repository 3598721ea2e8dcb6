"""Translating with the output `copy`: source words that the target vocabulary lacks come out as
they are."""

import shutil
from itertools import chain

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.vocab import EOS
from tests.toy_run import SOURCE, make_toy_run, toy_config
from tests.translate.conftest import assert_same

LINES = [*SOURCE, "", "qux Hund ✈ qux", "Zabra", "Ein Vexor liest <unk> ." + " Wort qux" * 40]


def make_run(path, *, seed=4, output="copy", tokenizer="spacy"):
    config = toy_config(tokenizer=tokenizer)
    config.model.output.name = output
    if output == "pointer":  # which is refused with the default decoder
        config.model.decoder.name = "conditional"
    return make_toy_run(path, config, seed=seed).path


@pytest.fixture(scope="module")
def run_path(module_path):
    return make_run(module_path / "copy")


@pytest.fixture
def translator(run_path):
    """It does nothing but copy, and likes to stop."""
    found = load(run_path, "cpu")
    with torch.no_grad():
        found.model.output.gate.bias.fill_(-30.0)
    return found


@pytest.mark.parametrize(
    ("beam_size", "unk"), [(3, "keep"), (1, "copy"), (3, "copy"), (3, "forbid")]
)
def test_source_words_are_copied_whatever_is_done_with_unknown_ones(translator, beam_size, unk):
    options = {"beam_size": beam_size, "unk": unk}
    translated = translator.translate_n_best(LINES, n_best=beam_size, **options)
    copied = set()
    for translation in chain.from_iterable(translated):
        assert set(translation.tokens) <= set(translation.source_tokens)
        copied |= set(translation.tokens).difference(translator.target_vocab.tokens)
    assert copied & {"qux", "Zabra", "Wort"}
    [named] = translator.translate(["Zabra"], **options)
    assert {*named.tokens} == {"Zabra"}
    assert "Zabra" in named.text
    assert named.unknown_positions == (0,)
    assert "<unk>" not in named.tokens


@pytest.mark.parametrize(
    ("output", "options"),
    [
        ("copy", {"beam_size": 1}),
        ("copy", {"beam_size": 3}),
        ("copy", {"method": "sample"}),
        ("copynet", {"beam_size": 3}),
        ("pointer", {"beam_size": 3}),
    ],
)
def test_a_prefix_is_copied_from_the_source(tmp_path, output, options):
    """ "Zabra" stands at another position in each line, and in one line nowhere."""
    path = make_run(tmp_path / "run", output=output)
    options = {"prefix": "A Zabra Vexor", "unk": "forbid", **options}
    translator = load(path, "cpu")
    both = load([path, shutil.copytree(path, tmp_path / "same")], "cpu")
    lines = ["Ein Vexor liest Zabra", "Zabra", "Drei Kinder", "Vexor Zabra Vexor Hund"]
    assert_same(both.translate(lines, **options), translator.translate(lines, **options))
    if output != "pointer":
        with torch.no_grad():
            translator.model.output.projection.bias[EOS] += 20.0
    made = translator.translate(lines, **options)
    forced = translator.score(lines, [translation.text for translation in made])
    num_finished = 0
    for translation, decoded in zip(made, forced, strict=True):
        if translation.is_finished:
            num_finished += 1
            assert_same([decoded], [translation])
    assert num_finished > 1


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_copied_prefix_is_not_repeated(translator, beam_size):
    [found] = translator.translate(
        ["Zabra Qux Zabra"], prefix="Zabra", no_repeat_ngram=1, beam_size=beam_size
    )
    assert found.tokens.count("Zabra") == 1


def test_only_outputs_over_the_same_tokens_form_an_ensemble(run_path, tmp_path):
    plain = make_run(tmp_path / "plain", output="softmax")
    with pytest.raises(UsageError, match="'copy' and 'softmax'"):
        load([run_path, plain], "cpu")
    other = make_run(tmp_path / "other", output="history_pointer")
    assert len(load([plain, other], "cpu").translate(SOURCE)) == len(SOURCE)
