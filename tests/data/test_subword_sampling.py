"""Training pairs whose subwords are drawn anew in each epoch."""

from __future__ import annotations

import math
import pickle
import re
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from seq2seq_attn.config import config_from_dict
from seq2seq_attn.data.id_store import IdsInMemory
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PairStore, PreparedCorpus
from seq2seq_attn.data.subword_sampling import check_sampling, describe_draw, draw_pairs
from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.tokenizers.sentencepiece import SentencePieceTokenizer, train_sentencepiece

Prepare = Callable[..., PreparedCorpus]
LINES = ["der rote Ball rollt weg", "ein roter Ballon steigt auf", "die Bälle rollen weiter", "ein Rad rollt weiter"]
CONFIG = {"corpus": "captions", "captions": {"num_train": 60, "num_valid": 5, "num_test": 5}}
SMALL = {"name": "sentencepiece", "vocab_size": 120}


@pytest.fixture(scope="module")
def prepared_from(tmp_path_factory: pytest.TempPathFactory) -> Prepare:
    data_dir = str(tmp_path_factory.mktemp("data"))

    def prepare(**tokenizer: object) -> PreparedCorpus:
        return prepare_corpus(
            config_from_dict({"data": {**CONFIG, "data_dir": data_dir, "tokenizer": {**SMALL, **tokenizer}}})
        )

    return prepare


def ids_of(pairs: PairStore) -> list[list[list[int]]]:
    return [[side(index).tolist() for index in range(len(pairs))] for side in (pairs.source, pairs.target)]


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_every_epoch_has_other_subwords_of_the_same_text(prepared_from: Prepare, model_type: str) -> None:
    prepared = prepared_from(model_type=model_type)
    first, second, again, of_another_seed = (
        ids_of(draw_pairs(prepared, 0.2, seed=seed, epoch=epoch)) for epoch, seed in ((0, 1), (1, 1), (0, 1), (0, 2))
    )
    own = ids_of(prepared.pairs("train"))
    assert first == again != of_another_seed
    tokenizers = prepared.source_tokenizer, prepared.target_tokenizer
    vocabs = prepared.source_vocab, prepared.target_vocab
    for side, (tokenizer, vocab, text) in enumerate(zip(tokenizers, vocabs, prepared.text("train"), strict=True)):
        assert [tokenizer.detokenize(vocab.tokens_of(ids)) for ids in first[side]] == text
        assert sum(ids != others for ids, others in zip(first[side], own[side], strict=True)) > len(text) / 2
        assert first[side] != second[side]


def test_a_draw_with_an_unknown_subword_is_not_used(prepared_from: Prepare, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = prepared_from()
    own = ids_of(prepared.pairs("train"))

    def sample_many(self: SentencePieceTokenizer, texts: list[str], *_: float, **__: int) -> list[list[str]]:
        reversed_own = [tokens[::-1] for tokens in self.tokenize_many(texts)]
        return [tokens if number % 2 else ["no such subword"] for number, tokens in enumerate(reversed_own)]

    monkeypatch.setattr(SentencePieceTokenizer, "sample_many", sample_many)
    drawn = ids_of(draw_pairs(prepared, 0.2, seed=1, epoch=0))
    for side, own_side in zip(drawn, own, strict=True):
        assert side[::2] == own_side[::2]
        assert side[1::2] == [ids[::-1] for ids in own_side[1::2]]


def test_the_description_tells_what_a_draw_does(prepared_from: Prepare) -> None:
    prepared = prepared_from()
    own = prepared.pairs("train")
    same = describe_draw(own, own)
    assert len(set(re.findall(r"[\d.]+(?= instead)|(?<=instead of )[\d.]+", same))) == 2
    assert describe_draw(own, draw_pairs(prepared, 0.2, seed=1, epoch=0)) != same


def test_a_side_of_characters_keeps_them(prepared_from: Prepare) -> None:
    prepared = prepared_from(target="characters")
    drawn, own = ids_of(draw_pairs(prepared, 0.2, seed=1, epoch=0)), ids_of(prepared.pairs("train"))
    assert drawn[0] != own[0]
    assert drawn[1] == own[1]


def test_a_segmentation_is_drawn_with_its_probability_to_the_power_of_alpha() -> None:
    tokenizer, alpha, count = train_sentencepiece(LINES, vocab_size=40), 0.1, 4_000
    model = tokenizer._processor
    every = map(tuple, model.nbest_encode("rollt weiter", nbest_size=500, out_type=str))
    scores = {pieces: sum(model.get_score(model.piece_to_id(piece)) for piece in pieces) for pieces in every}
    weights = {pieces: math.exp(alpha * score) for pieces, score in scores.items()}
    drawn = Counter(map(tuple, tokenizer.sample_many(["rollt weiter"] * count, alpha, seed=1)))
    assert len(weights) > 10
    assert set(drawn) <= set(weights)
    for segmentation, weight in weights.items():
        probability = weight / sum(weights.values())
        error = math.sqrt(probability * (1 - probability) / count)
        assert abs(drawn[segmentation] / count - probability) < 4 * error + 1e-9


def test_bpe_with_no_merge_skipped_is_the_tokenizers_own() -> None:
    tokenizer = train_sentencepiece(LINES, vocab_size=60, model_type="bpe")
    assert tokenizer.sample_many(LINES, 0.0, seed=1) == tokenizer.tokenize_many(LINES)
    pieces = [sum(map(len, tokenizer.sample_many(LINES * 50, alpha, seed=1))) for alpha in (0.0, 0.1, 0.5)]
    assert pieces == sorted(set(pieces))


def test_ids_in_memory_survive_pickling() -> None:
    store = IdsInMemory([np.array(ids, dtype=np.int32) for ids in ([4, 5], [], [6])])
    for copy in (store, pickle.loads(pickle.dumps(store))):
        assert [copy[index].tolist() for index in range(len(copy))] == [[4, 5], [], [6]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"tokenizer": {"name": "spacy"}}, "needs data.tokenizer.name=sentencepiece"),
        ({"source_languages": ["de", "fr"]}, "needs one source"),
        ({"tokenizer": {"sentences": True}}, "needs data.tokenizer.sentences=false"),
        ({"tokenizer": {"target": "positions"}}, "needs another data.tokenizer.target"),
        ({"links": "ibm1"}, "needs data.links=null"),
        ({"tokenizer": {"model_type": "bpe"}, "subword_sampling": 1.0}, "needs alpha below 1"),
    ],
)
def test_what_it_cannot_be_combined_with(data: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=rf"^data\.subword_sampling=[\d.]+ {message}.*=null$"):
        check_sampling(config_from_dict({"data": {"subword_sampling": 0.2, **data}}).data)
    check_sampling(config_from_dict({"data": {**data, "subword_sampling": None}}).data)
