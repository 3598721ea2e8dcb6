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
    extended = [
        extended_ids(["Bo", "Anna"], ["Anna", "Bo"], VOCAB),
        extended_ids(["Anna"], ["Cy"], VOCAB),
    ]
    batch = collate([[UNK, 8], [8]], [[4, UNK], [UNK]], [0, 1], extended=extended)
    assert batch.source.extended_ids_BS.tolist() == [[6, 4, EOS], [4, EOS, PAD]]
    assert batch.tgt_extended_BT.tolist() == [[4, 6, EOS], [UNK, EOS, PAD]]
    assert batch.tgt_out_BT.tolist() == [[4, UNK, EOS], [UNK, EOS, PAD]]
    without = collate([[7, 8]], [[4]], [0])
    assert without.source.extended_ids_BS.tolist() == [[UNK, UNK, EOS]]
    assert without.tgt_extended_BT.tolist() == without.tgt_out_BT.tolist()
    rounded = rounded_up(batch, rows=3, positions=4)
    assert rounded.source.extended_ids_BS.tolist() == [
        [6, 4, EOS, PAD],
        [4, EOS, PAD, PAD],
        [EOS, PAD, PAD, PAD],
    ]
    assert rounded.tgt_extended_BT.tolist() == [[4, 6, EOS, PAD], [UNK, EOS, PAD, PAD], [PAD] * 4]


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


def test_a_batch_of_a_prepared_corpus_is_that_of_its_text(prepared):
    for split in ("train", "valid"):
        pairs, tokenizers = (
            prepared.pairs(split),
            (prepared.source_tokenizer, prepared.target_tokenizer),
        )
        sides = [
            tokenizer.tokenize_many(lines)
            for tokenizer, lines in zip(tokenizers, prepared.text(split), strict=True)
        ]
        extended = [extended_ids(*pair, prepared.target_vocab) for pair in zip(*sides, strict=True)]
        source, target = (
            [vocab.ids_of(tokens) for tokens in lines]
            for vocab, lines in zip(
                (prepared.source_vocab, prepared.target_vocab), sides, strict=True
            )
        )
        expected, batch = (
            collate(source, target, range(len(pairs)), extended=extended),
            pairs.batch(range(len(pairs))),
        )
        for one, other in zip(
            [*batch[1:], *batch.source], [*expected[1:], *expected.source], strict=True
        ):
            assert one is None or np.array_equal(one, other)
    num_ids = len(prepared.target_vocab)
    assert prepared.pairs("train").batch([2]).tgt_extended_BT[0, 1] == num_ids + 1  # Bo
    without = prepared.pairs("train").batch([2], with_extended=False)
    assert without.tgt_extended_BT.tolist() == without.tgt_out_BT.tolist()
