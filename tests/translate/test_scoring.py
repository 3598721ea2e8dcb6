"""Reading given pairs: the same as what search saw on its way to them, whatever the batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seq2seq_attn.data.batch import collate_source
from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.vocab import EOS
from seq2seq_attn.translate.scoring import read_pairs, summaries
from seq2seq_attn.translate.translator import load
from tests.search.fake_model import FakeModel
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config
from tests.translate.test_translator import fake

ARMS = ("additive", "uniform", "none", "initial")
SOURCES = [*SOURCE, "", "Ein Hund", "Hund " * 60, "Wiese!", "qux ✈ 你好", "Ein"]
TARGETS = [*TARGET, "A dog.", " ", "dog " * 3, "Meadow, meadow, meadow!", "qux", "dog " * 70]
BLANK_SOURCE, BLANK_TARGET = 5, 6


@pytest.fixture(scope="module")
def translators(tmp_path_factory):
    """Word models that end their sentences soon."""
    root = tmp_path_factory.mktemp("runs")
    found = {
        arm: load(make_toy_run(root / arm, toy_config(tokenizer="spacy", attention=arm)).path, device="cpu")
        for arm in ARMS
    }
    for translator in found.values():
        translator.model.decoder.output.bias.data[EOS] += 2.0
    return found


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one.source_tokens, one.target_tokens) == (other.source_tokens, other.target_tokens)
        assert one.log_prob == pytest.approx(other.log_prob, rel=1e-4)
        np.testing.assert_allclose(one.summary_M, other.summary_M, atol=1e-4)
        assert (one.weights_TS is None) == (other.weights_TS is None)
        if one.weights_TS is not None:
            np.testing.assert_allclose(one.weights_TS, other.weights_TS, atol=1e-4)


@pytest.mark.parametrize("arm", ARMS)
def test_the_model_s_own_translations_are_read_as_they_were_made(translators, arm):
    translator = translators[arm]
    lines = [*SOURCE, *(" ".join(line.split()[start : start + 2]) for line in SOURCE for start in range(5))]
    made = translator.translate(lines, beam_size=1, unk="forbid")
    read = list(read_pairs(translator, lines, [one.text for one in made]))
    matched = 0
    for translation, reading in zip(made, read, strict=True):
        if reading.target_tokens != translation.tokens or not translation.is_finished:
            continue  # cut by the limit, or not read as the words it was made of
        matched += 1
        assert reading.source_tokens == translation.source_tokens
        assert reading.log_prob == pytest.approx(translation.log_prob, abs=1e-4)
        if translation.attention is None:
            assert reading.weights_TS is None
        else:
            np.testing.assert_allclose(reading.weights_TS, translation.attention, atol=1e-4)
    assert matched >= 4


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("batch_size", [2, 3, 64])
def test_batch_size_and_order_change_nothing(translators, arm, batch_size, monkeypatch):
    expected = list(read_pairs(translators[arm], SOURCES, TARGETS, batch_size=1))
    assert len({reading.log_prob for reading in expected}) == len(expected)
    assert_same(list(read_pairs(translators[arm], SOURCES, TARGETS, batch_size=batch_size)), expected)
    order = np.random.default_rng(0).permutation(len(SOURCES)).tolist()
    monkeypatch.setattr("seq2seq_attn.translate.scoring._CHUNK_PAIRS", 4)
    shuffled = read_pairs(translators[arm], [SOURCES[i] for i in order], [TARGETS[i] for i in order])
    assert_same(list(shuffled), [expected[i] for i in order])


def test_weights_lie_over_the_pair_s_own_tokens(translators):
    translator = translators["additive"]
    for number, reading in enumerate(read_pairs(translator, SOURCES, TARGETS)):
        weights_TS = reading.weights_TS
        assert weights_TS.dtype == np.float32
        assert reading.summary_M.dtype == np.float32
        if number == BLANK_SOURCE:
            assert (reading.source_tokens, reading.target_tokens) == (["<eos>"], [])
            assert (weights_TS.shape, reading.log_prob) == ((0, 1), 0.0)
            assert not reading.summary_M.any()
        else:
            assert reading.source_tokens == [*translator.source_tokenizer.tokenize(SOURCES[number]), "<eos>"]
            assert reading.target_tokens == translator.target_tokenizer.tokenize(TARGETS[number])
            assert weights_TS.shape == (len(reading.target_tokens) + 1, len(reading.source_tokens))
            assert (len(weights_TS) == 1) == (number == BLANK_TARGET)
            np.testing.assert_allclose(weights_TS.sum(axis=1), 1.0, atol=1e-5)


def test_a_line_longer_than_the_run_s_limit_is_read_whole(translators):
    [reading] = read_pairs(translators["additive"], ["Hund " * 60], ["dog"])
    assert len(reading.source_tokens) == 61  # the run cuts what it translates at 30 tokens


@pytest.mark.parametrize("arm", ARMS)
def test_summaries_are_the_encoder_s_last_states(translators, arm):
    translator = translators[arm]
    summaries_NM = summaries(translator, SOURCES, batch_size=3)
    assert summaries_NM.dtype == np.float32
    for row, (line, reading) in enumerate(zip(SOURCES, read_pairs(translator, SOURCES, ["x"] * 11), strict=True)):
        np.testing.assert_allclose(summaries_NM[row], reading.summary_M, atol=1e-4)
        if line:
            ids = translator.source_vocab.ids_of(translator.source_tokenizer.tokenize(line))
            with torch.inference_mode():
                values_SM = translator.model.encode_source(collate_source([ids])).values_BSM[0]
            forward, backward = np.split(summaries_NM[row], 2)
            np.testing.assert_allclose(forward, values_SM[-1, : len(forward)], atol=1e-4)
            np.testing.assert_allclose(backward, values_SM[0, len(forward) :], atol=1e-4)
    assert summaries(translator, []).shape == (0, summaries_NM.shape[1])


def test_the_fixed_vector_is_all_that_its_decoder_sees(translators):
    """What `none` attends to, at every step, is `summary_M`."""
    translator = translators["none"]
    ids = translator.source_vocab.ids_of(translator.source_tokenizer.tokenize(SOURCE[0]))
    with torch.inference_mode():
        seen_BSM = translator.model.start(collate_source([ids]), 1).memory.values_BSM
    [reading, *_] = read_pairs(translator, SOURCE, TARGET)
    assert seen_BSM.shape == (1, 1, len(reading.summary_M))
    np.testing.assert_allclose(reading.summary_M, seen_BSM[0, 0], atol=1e-4)


def test_dropout_is_off_while_a_model_in_training_reads(translators):
    translator = translators["additive"]
    expected = list(read_pairs(translator, SOURCE, TARGET))
    translator.model.train()
    try:
        translator.model.dropouts = translator.model.dropouts._replace(embedding=0.5)
        assert_same(list(read_pairs(translator, SOURCE, TARGET)), expected)
        np.testing.assert_array_equal(summaries(translator, SOURCE), summaries(translator, SOURCE))
        assert translator.model.training
    finally:
        translator.model.eval()


def test_what_is_refused(translators):
    with pytest.raises(UsageError, match="2 source lines and 1 target lines: give one target for each source"):
        read_pairs(translators["none"], ["a", "b"], ["c"])
    with pytest.raises(UsageError, match="batch_size=0: expected 1 or more"):
        read_pairs(translators["none"], ["a"], ["c"], batch_size=0)
    with pytest.raises(UsageError, match="batch_size=-1: expected 1 or more"):
        summaries(translators["none"], ["a"], batch_size=-1)
    with pytest.raises(TypeError, match="expected a translator with a Seq2Seq model, got one with FakeModel"):
        list(read_pairs(fake(FakeModel(num_free=2, seed=1)), ["s1"], ["t1"]))
