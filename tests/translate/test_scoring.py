"""Forced decoding of given pairs: the same as what search saw on its way to them, whatever the
batch."""

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.vocab import EOS
from seq2seq_attn.translate import segments
from seq2seq_attn.translate.scoring import force_decode
from tests.search.fake_model import FakeModel
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config
from tests.translate.conftest import assert_same
from tests.translate.test_translator import fake

SOURCES = [*SOURCE, "", "Ein Hund", "Hund " * 60, "Wiese!", "qux ✈ 你好", "Ein"]
TARGETS = [*TARGET, "A dog.", " ", "dog " * 3, "Meadow, meadow, meadow!", "qux", "dog " * 70]
BLANK_SOURCE = 5
BLANK_TARGET = 6


def make_translator(path, attention):
    """Of words; it ends its sentences soon."""
    run = make_toy_run(path, toy_config(tokenizer="spacy", attention=attention))
    translator = load(run, device="cpu")
    translator.model.output.projection.bias.data[EOS] += 2.0
    return translator


@pytest.fixture(scope="module", params=["additive", "uniform", "fixed", "initial"])
def translator(request, tmp_path_factory):
    return make_translator(tmp_path_factory.mktemp("run"), request.param)


@pytest.fixture(scope="module")
def additive(tmp_path_factory):
    return make_translator(tmp_path_factory.mktemp("run"), "additive")


@pytest.mark.parametrize(("beam_size", "length_penalty"), [(1, 0.0), (3, 1.0)])
def test_the_model_s_own_translations_score_as_they_were_made(
    translator, beam_size, length_penalty
):
    lines = list(SOURCE)
    for line in SOURCE:
        words = line.split()
        lines += [" ".join(words[start : start + 2]) for start in range(5)]
    options = {"beam_size": beam_size, "length_penalty": length_penalty}
    made = translator.translate(lines, unk="forbid", **options)
    scored = translator.score(lines, [translation.text for translation in made])
    num_matched = 0
    for translation, decoded in zip(made, scored, strict=True):
        if decoded.tokens != translation.tokens or not translation.is_finished:
            continue  # cut by the limit, or not cut into the words it was made of
        num_matched += 1
        assert_same([decoded], [translation])
        score = decoded.log_prob / (len(decoded.tokens) + 1) ** length_penalty
        assert translation.score == pytest.approx(score, abs=1e-4)
    assert num_matched >= 4


@pytest.mark.parametrize("length_penalty", [0.0, 0.5])
def test_a_score_is_divided_by_the_length_with_eos(additive, monkeypatch, length_penalty):
    search = additive.search.model_copy(update={"length_penalty": length_penalty})
    monkeypatch.setattr(additive, "search", search)
    for decoded in additive.score(SOURCE[:3], [*TARGET[:2], " "]):
        expected = decoded.log_prob / (len(decoded.tokens) + 1) ** length_penalty
        assert decoded.score == pytest.approx(expected)
        assert decoded.log_prob < 0.0


def test_batch_size_and_order_change_nothing(translator, monkeypatch):
    expected = translator.score(SOURCES, TARGETS, batch_size=1)
    assert len({decoded.log_prob for decoded in expected}) == len(expected)
    for batch_size in (2, 3, 64):
        assert_same(translator.score(SOURCES, TARGETS, batch_size=batch_size), expected)
    order = np.random.default_rng(0).permutation(len(SOURCES)).tolist()
    monkeypatch.setattr(segments, "CHUNK_LINES", 4)
    shuffled = translator.score([SOURCES[i] for i in order], [TARGETS[i] for i in order])
    assert_same(shuffled, [expected[i] for i in order])


def test_weights_lie_over_the_pair_s_own_tokens(additive):
    for number, decoded in enumerate(additive.score(SOURCES, TARGETS)):
        attention = decoded.attention
        assert attention.dtype == np.float32
        if number == BLANK_SOURCE:
            assert (decoded.source_tokens, decoded.tokens) == (["<eos>"], [])
            assert (attention.shape, decoded.log_prob) == ((0, 1), 0.0)
            continue
        # lines are whole, though the run cuts what it translates at 30 tokens
        tokens = additive.source_tokenizer.tokenize(SOURCES[number])
        assert decoded.source_tokens == [*tokens, "<eos>"]
        assert decoded.tokens == additive.target_tokenizer.tokenize(TARGETS[number])
        assert attention.shape == (len(decoded.tokens) + 1, len(decoded.source_tokens))
        assert (len(attention) == 1) == (number == BLANK_TARGET)
        np.testing.assert_allclose(attention.sum(axis=1), 1.0, atol=1e-5)


def test_score_reads_iterables_of_strings(additive):
    decoded = additive.score(SOURCES, TARGETS)
    assert_same(additive.score(iter(SOURCES), map(str, TARGETS)), decoded)
    with pytest.raises(TypeError, match=r"sources.*score\(\[source\], \[target\]\)"):
        additive.score("Ein Hund", "A dog")
    with pytest.raises(TypeError, match=r"targets\[0\]"):
        additive.score(["Ein Hund"], [None])


def test_refuses_unequal_numbers_of_lines_batch_size_0_and_ensembles(additive):
    with pytest.raises(UsageError, match="2 source lines and 1 target"):
        force_decode(additive, ["a", "b"], ["c"])
    with pytest.raises(UsageError, match="batch_size=0"):
        force_decode(additive, ["a"], ["c"], batch_size=0)
    with pytest.raises(UsageError, match="ensemble"):
        force_decode(fake(FakeModel(num_free=2, seed=1)), ["s1"], ["t1"])
