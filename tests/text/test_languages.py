"""Codes of languages: two letters, three, with region or script."""

import pytest

from seq2seq_attn.text.languages import CODE, english_name, separates_words, short_code
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer


@pytest.mark.parametrize(
    ("code", "short"),
    [
        ("fr", "fr"),
        ("fra", "fr"),
        ("fre", "fr"),
        ("pt-BR", "pt"),
        ("zho_Hant", "zh"),
        ("luo", "luo"),
        ("ace_Arab", "ace"),
        ("FIN", "fi"),
        ("German", "de"),
        ("Cantonese", "yue"),
    ],
)
def test_a_code_is_shortened_to_two_letters_if_there_are_any(code, short):
    assert short_code(code) == short


def test_endings_of_file_names_that_are_codes():
    codes = "en pt-BR zh_Hans ita hau luo pcm spa_Latn urd_Arab xyz_Cyrl".split()
    assert [code for code in codes if not CODE.fullmatch(code)] == []
    others = "txt src ref out tok bpe tsv csv xml bak2 Latn e EN eng_latn".split()
    assert [code for code in others if CODE.fullmatch(code)] == []


@pytest.mark.parametrize(
    ("codes", "line"),
    [
        (("fr", "fra", "fre", "fra_Latn"), "L'ami qu'on attend est-il là ?"),
        (("de", "deu", "ger", "deu_Latn"), "Sie sagt: „Wie geht's?“ 20-30 Leute."),
    ],
)
def test_every_code_of_a_language_tokenizes_and_detokenizes_alike(codes, line):
    expected = SpacyTokenizer(codes[0]).tokenize(line)
    for code in codes:
        tokenizer = SpacyTokenizer(code)
        assert tokenizer.tokenize(line) == expected
        assert tokenizer.detokenize(expected) == line


def test_languages_without_spaces_between_words():
    without = "zh zho_Hans jpn yue tha lao_Laoo khm mya bod dzo".split()
    assert [code for code in without if separates_words(code)] == []
    assert all(map(separates_words, "ko kor_Hang vi deu amh_Ethi tir".split()))


def test_every_english_name_names_its_code():
    for name, code in (("german", "deu_Latn"), ("portuguese", "pt-BR"), ("persian", "fas")):
        assert english_name(code) == name
    assert english_name("machine") == "machine"
