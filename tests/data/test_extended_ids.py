"""Extended ids: from the text to the batch, and from an id back to the source token."""

import numpy as np
import pytest

from seq2seq_attn.data.batch import collate, rounded_up
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.text.tokenizers.base import PositionTokenizer, SpaceTokenizer
from seq2seq_attn.text.vocab import EOS, PAD, SPECIALS, UNK, Vocab, extended_ids

VOCAB = Vocab([*SPECIALS, "Anna", "dog"])


def test_an_unknown_token_is_named_by_its_first_source_position():
    source = ["Bo", "dog", "<pad>", "Bo", "Hund"]
    found = extended_ids(source, ["dog", "Bo", "Cy", "<pad>", "Anna"], VOCAB)
    assert list(found.source) == [6, 5, 8, 6, 10]
    assert list(found.target) == [5, 6, UNK, 8, 4]
    assert VOCAB.tokens_of([5, 6, UNK, 8], beyond=source) == ["dog", "Bo", "<unk>", "<pad>"]
    assert extended_ids(["dog", "Anna"], ["dog"], VOCAB) == ([5, 4], [5])
    assert extended_ids([], [], VOCAB) == ([], [])


def test_positions_are_numbers_from_1_on_the_target_side():
    vocab = Vocab([*SPECIALS, "1", "2", "4"])
    spelled = PositionTokenizer().spell_source(["c", "a", "t", "s", "x"])
    assert spelled == ["1", "2", "3", "4", "5"]
    assert SpaceTokenizer().spell_source(["c", "a"]) == ["c", "a"]
    found = extended_ids(spelled, ["5", "2", "3"], vocab)
    assert list(found.source) == [4, 5, 9, 6, 11]
    assert list(found.target) == [11, 5, 9]


def test_padding_adds_specials():
    extended = [extended_ids(["Bo", "Anna"], ["Anna", "Bo"], VOCAB)]
    batch = collate([[UNK, 8]], [[4, UNK]], [0], extended=extended)
    assert batch.source.extended_ids_BS.tolist() == [[6, 4, EOS]]
    assert batch.tgt_extended_BT.tolist() == [[4, 6, EOS]]
    assert batch.tgt_out_BT.tolist() == [[4, UNK, EOS]]
    without = collate([[7, 8]], [[4]], [0])
    assert without.source.extended_ids_BS.tolist() == [[UNK, UNK, EOS]]
    assert without.tgt_extended_BT.tolist() == without.tgt_out_BT.tolist()
    rounded = rounded_up(batch, rows=2, positions=4)
    assert rounded.source.extended_ids_BS.tolist() == [[6, 4, EOS, PAD], [EOS, PAD, PAD, PAD]]
    assert rounded.tgt_extended_BT.tolist() == [[4, 6, EOS, PAD], [PAD] * 4]


@pytest.fixture(params=[{"min_frequency": 3}, {"min_frequency": 4, "joint": True}], ids=str)
def prepared(request, files_config, write_pairs):
    """`Bo` and `Cy` are too rare for a vocabulary; `Cy` and `Di` stand on one side only."""
    text = {
        "train": ["a b|A B", "b a|B A", "a Bo|A Bo", "Bo Cy|A B", "Di b Di|B Di"],
        "valid": ["a Em b Em|Em A Fay <unk>", "a <unk>|Bo <unk>"],
    }
    texts = {
        split: write_pairs(split, [line.split("|") for line in lines])
        for split, lines in text.items()
    }
    return prepare_corpus(files_config(**texts, vocab=request.param))


@pytest.mark.parametrize("split", ["train", "valid"])
def test_a_batch_of_a_prepared_corpus_is_that_of_its_text(prepared, split):
    source_lines, target_lines = prepared.text(split)
    sources = prepared.source_tokenizer.tokenize_many(source_lines)
    targets = prepared.target_tokenizer.tokenize_many(target_lines)
    extended = [
        extended_ids(*pair, prepared.target_vocab) for pair in zip(sources, targets, strict=True)
    ]
    source_ids = list(map(prepared.source_vocab.ids_of, sources))
    target_ids = list(map(prepared.target_vocab.ids_of, targets))
    expected = collate(source_ids, target_ids, range(len(sources)), extended=extended)
    batch = prepared.pairs(split).batch(range(len(sources)))
    tensors = zip([*batch[1:], *batch.source], [*expected[1:], *expected.source], strict=True)
    for one, other in tensors:
        assert one is None or np.array_equal(one, other)


def test_a_rare_target_token_that_the_source_has_is_extended(prepared):
    pairs = prepared.pairs("train")
    bo = pairs.batch([2]).tgt_extended_BT[0, 1]
    assert bo == len(prepared.target_vocab) + 1
    without = pairs.batch([2], with_extended=False)
    assert without.tgt_extended_BT.tolist() == without.tgt_out_BT.tolist()
