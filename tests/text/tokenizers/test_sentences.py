"""The tokenizer that marks the ends of sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seq2seq_attn.config.data import TokenizerConfig
from seq2seq_attn.errors import UserError
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.tokenizers.factory import build_tokenizers, load_tokenizer
from seq2seq_attn.text.tokenizers.several import SentenceTokenizer

LINES = ["Ein Hund. Er rennt!", "Wer ist da"]


def build(name: str) -> Tokenizer:
    source, target = build_tokenizers(
        [*LINES, "。！"],
        ["A dog."],
        source_languages=["de"],
        target_language="en",
        **TokenizerConfig(name=name, vocab_size=40, sentences=True).model_dump(),  # type: ignore[arg-type]
    )
    assert "\t" not in target.tokenize("A dog. It runs.")
    return source


@pytest.mark.parametrize("name", ["spacy", "sentencepiece", "characters"])
def test_a_mark_follows_each_sentence(name: str, tmp_path: Path) -> None:
    tokenizer = build(name)
    assert [tokens.count("\t") for tokens in tokenizer.tokenize_many(LINES)] == [2, 0]
    assert tokenizer.tokenize(LINES[0])[-2:] == ["!", "\t"]
    assert [tokenizer.detokenize(tokens) for tokens in tokenizer.tokenize_many(LINES)] == LINES
    tokenizer.save(tmp_path, "source")
    loaded = load_tokenizer(tmp_path, "source")
    assert (loaded.name, loaded.tokenize_many(LINES)) == (name, tokenizer.tokenize_many(LINES))
    assert isinstance(loaded, SentenceTokenizer)


@pytest.mark.parametrize("name", ["sentencepiece", "characters"])
@pytest.mark.parametrize(
    ("line", "num_sentences"),
    [
        ("Er läuft 3.5 km am 24.12.", 1),
        ("Er ruft z.B. nie. Ja!", 3),
        ('Er ruft: "Nein!" Ja.', 2),
        ("Er。Rennt！ Ja", 2),
    ],
)
def test_a_mark_inside_a_word_ends_no_sentence(name: str, line: str, num_sentences: int) -> None:
    assert build(name).tokenize(line).count("\t") == num_sentences


def test_joined_lines_have_the_tokens_of_their_parts() -> None:
    tokenizer = build("spacy")
    first, second = "Ein Hund.", "Er rennt!"
    assert tokenizer.tokenize(f"{first} {second}") == [*tokenizer.tokenize(first), *tokenizer.tokenize(second)]


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    build("characters").save(tmp_path, "source")
    path = tmp_path / "source.tokenizer.json"
    path.write_text(json.dumps({"name": "sentences", "parts": ["../text"]}))
    with pytest.raises(UserError, match=r"source\.tokenizer\.json: not a tokenizer file"):
        load_tokenizer(tmp_path, "source")
