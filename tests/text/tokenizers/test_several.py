"""The tokenizers of several sources, and of sentences."""

from collections import Counter

import pytest

from seq2seq_attn.config import DataConfig
from seq2seq_attn.text.tokenizers.factory import build_tokenizers, load_source
from seq2seq_attn.text.tokenizers.several import SentenceSource, SeveralSources
from seq2seq_attn.text.vocab import EOS, UNK, Vocab, build_vocab

LINES = ["Ein Hund.\tUn chien.\tPes.", "Zwei Katzen.\tDeux chats.\tDvě kočky."]
TARGET = ["A dog.", "Two cats."]


def build(name):
    tokenizer = {"name": name, "vocab_size": 60}
    data = DataConfig(source_languages=["de", "fr", "cs"], tokenizer=tokenizer)
    source, _ = build_tokenizers(LINES, TARGET, data)
    assert isinstance(source, SeveralSources)
    return source


@pytest.mark.parametrize("name", ["spacy", "sentencepiece", "characters"])
def test_saved_and_loaded_it_gives_the_same_tokens(name, tmp_path):
    tokenizer = build(name)
    tokenizer.save(tmp_path, "source")
    loaded = load_source(tmp_path)
    assert loaded.tokenize_many(LINES) == tokenizer.tokenize_many(LINES)
    assert [line.count("\t") for line in loaded.tokenize_many(LINES)] == [2, 2]
    assert loaded.name == name


def test_each_source_is_tokenized_by_the_rules_of_its_language():
    assert build("spacy").tokenize("l'eau\tl'eau\tl'eau") == [
        "l'eau",
        "\t",
        "l'",
        "eau",
        "\t",
        "l'eau",
    ]


def test_a_source_may_be_blank():
    assert build("characters").tokenize_many(["a\t\tb", "\t\t", " "]) == [
        ["a", "\t", "\t", "b"],
        [],
        [],
    ]


def test_the_end_of_a_source_is_eos_and_text_cannot_spell_it():
    tokenizer = build("characters")
    vocab = build_vocab(
        Counter(token for tokens in tokenizer.tokenize_many(LINES) for token in tokens)
    )
    assert "\t" not in vocab.tokens
    assert vocab.ids_of(["\t", "<eos>"]) == [EOS, UNK]
    assert Vocab(vocab.tokens).ids_of(["\t"]) == [EOS]


SENTENCES = ["Ein Hund. Er rennt!", "Wer ist da"]


def build_for_sentences(name):
    data = DataConfig(tokenizer={"name": name, "vocab_size": 40, "sentences": True})
    source, target = build_tokenizers([*SENTENCES, "。！"], ["A dog."], data)
    assert "\t" not in target.tokenize("A dog. It runs.")
    return source


@pytest.mark.parametrize("name", ["spacy", "sentencepiece", "characters"])
def test_a_mark_follows_each_sentence(name, tmp_path):
    tokenizer = build_for_sentences(name)
    assert [tokens.count("\t") for tokens in tokenizer.tokenize_many(SENTENCES)] == [2, 0]
    assert tokenizer.tokenize(SENTENCES[0])[-2:] == ["!", "\t"]
    tokenizer.save(tmp_path, "source")
    loaded = load_source(tmp_path)
    assert (loaded.name, loaded.tokenize_many(SENTENCES)) == (
        name,
        tokenizer.tokenize_many(SENTENCES),
    )
    assert isinstance(loaded, SentenceSource)


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
def test_a_mark_inside_a_word_ends_no_sentence(name, line, num_sentences):
    assert build_for_sentences(name).tokenize(line).count("\t") == num_sentences
