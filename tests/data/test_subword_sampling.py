"""Training pairs whose subwords are drawn anew in each epoch."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from seq2seq_attn.config import config_from_dict
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PairStore, PreparedCorpus
from seq2seq_attn.data.subword_sampling import check_sampling, describe_draw, draw_pairs
from seq2seq_attn.errors import UsageError
from seq2seq_attn.text.tokenizers.sentencepiece import train_sentencepiece
from seq2seq_attn.text.vocab import UNK

Prepare = Callable[..., PreparedCorpus]
LINES = ["der rote Ball rollt weg", "ein roter Ballon steigt auf", "die Bälle rollen weiter", "ein Rad rollt weiter"]
CONFIG = {"corpus": "captions", "limit": {"train": 60, "valid": 5, "test": 5}}
SMALL = {"name": "sentencepiece", "vocab_size": 120}


@pytest.fixture(scope="module")
def prepared_from(tmp_path_factory: pytest.TempPathFactory) -> Prepare:
    data_dir = str(tmp_path_factory.mktemp("data"))

    def prepare(sampling: float | None = 0.2, **tokenizer: object) -> PreparedCorpus:
        data = {**CONFIG, "data_dir": data_dir, "tokenizer": {**SMALL, **tokenizer}, "subword_sampling": sampling}
        return prepare_corpus(config_from_dict({"data": data}))

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
    assert first == again
    tokenizers = prepared.source_tokenizer, prepared.target_tokenizer
    vocabs = prepared.source_vocab, prepared.target_vocab
    for side, (tokenizer, vocab, text) in enumerate(zip(tokenizers, vocabs, prepared.text("train"), strict=True)):
        assert [tokenizer.detokenize(vocab.tokens_of(ids)) for ids in first[side]] == text
        assert sum(ids != others for ids, others in zip(first[side], own[side], strict=True)) > len(text) / 2
        assert first[side] != second[side]
        assert first[side] != of_another_seed[side]


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_the_vocabularies_have_every_subword_that_may_be_drawn(prepared_from: Prepare, model_type: str) -> None:
    prepared = prepared_from(model_type=model_type, vocab_size=400)
    drawn, own = ids_of(draw_pairs(prepared, 0.2, seed=1, epoch=0)), ids_of(prepared.pairs("train"))
    for side, own_side in zip(drawn, own, strict=True):
        assert not any(UNK in ids for ids in side)
        assert sum(ids == others for ids, others in zip(side, own_side, strict=True)) < len(own_side) / 10
    assert {UNK} < set(range(UNK, len(prepared.source_vocab))) - {i for ids in own[0] for i in ids}


def test_a_character_that_the_model_does_not_know_stays_unknown(tmp_path: Path) -> None:
    for language, lines in {"de": ["ein Ball", "ein Rad"] * 9, "en": ["a ball", "a wheel"] * 9}.items():
        (tmp_path / f"train.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (tmp_path / f"valid.{language}").write_text("ab\n", encoding="utf-8")
        (tmp_path / f"extra.{language}").write_text(f"{lines[0]} \u2603\n", encoding="utf-8")
    texts = {"corpus": "files", "train": str(tmp_path / "train"), "valid": str(tmp_path / "valid")}
    data = {**texts, "data_dir": str(tmp_path), "tokenizer": {**SMALL, "vocab_size": 20}, "subword_sampling": 0.2}
    prepared = prepare_corpus(config_from_dict({"data": {**data, "extra": [str(tmp_path / "extra")]}}))
    drawn = draw_pairs(prepared, 0.2, seed=1, epoch=0)
    assert [side(18).tolist().count(UNK) for side in (drawn.source, drawn.target)] == [1, 1]
    copied, own = drawn.batch([18]), prepared.pairs("train").batch([18])
    unknown = len(prepared.target_vocab) + copied.source.ids_BS[0].tolist().index(UNK)  # the snowman of the source
    assert unknown in copied.tgt_surface_BT[0].tolist()
    assert copied.tgt_surface_BT[0].tolist().count(UNK) == own.tgt_surface_BT[0].tolist().count(UNK) == 0


def test_how_subwords_are_drawn_does_not_change_the_prepared_corpus(prepared_from: Prepare) -> None:
    assert prepared_from().directory == prepared_from(sampling=0.5).directory != prepared_from(sampling=None).directory


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


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_another_process_draws_the_same_subwords(tmp_path: Path, model_type: str) -> None:
    train_sentencepiece(LINES, vocab_size=60, model_type=model_type).save(tmp_path, "source")
    program = (
        "import sys; from pathlib import Path; from seq2seq_attn.text.tokenizers.factory import load_tokenizer; "
        f"print(list(load_tokenizer(Path(sys.argv[1]), 'source').sample_many({LINES!r}, 0.3, seed=1)))"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert "rollt" in first.replace("', '", "")
    assert first == second


def test_bpe_with_no_merge_skipped_is_the_tokenizers_own() -> None:
    tokenizer = train_sentencepiece(LINES, vocab_size=60, model_type="bpe")
    assert list(tokenizer.sample_many(LINES, 0.0, seed=1)) == tokenizer.tokenize_many(LINES)
    pieces = [sum(map(len, tokenizer.sample_many(LINES * 50, alpha, seed=1))) for alpha in (0.0, 0.1, 0.5)]
    assert pieces == sorted(set(pieces))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"tokenizer": {"name": "spacy"}}, "needs data.tokenizer.name=sentencepiece"),
        ({"source_languages": ["de", "fr"]}, "needs a single source"),
        ({"tokenizer": {"sentences": True}}, "needs data.tokenizer.sentences=false"),
        ({"tokenizer": {"target": "positions"}}, "needs another data.tokenizer.target"),
        ({"links": "ibm1"}, "needs data.links=null"),
        ({"vocab": {"min_frequency": 2}}, "needs data.vocab.max_size=null and min_frequency=1"),
        ({"vocab": {"max_size": 9}}, "needs data.vocab.max_size=null and min_frequency=1"),
        ({"tokenizer": {"model_type": "bpe"}, "subword_sampling": 0.0}, "needs alpha between 0"),
        ({"tokenizer": {"model_type": "bpe"}, "subword_sampling": 1.0}, "needs alpha between 0"),
    ],
)
def test_what_it_cannot_be_combined_with(data: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=rf"^data\.subword_sampling=[\d.]+ {message}.*=null$"):
        check_sampling(config_from_dict({"data": {"subword_sampling": 0.2, **data}}).data)
    check_sampling(config_from_dict({"data": {**data, "subword_sampling": None}}).data)
