"""Putting spaCy's tokens together again."""

import pytest
import sacrebleu

from seq2seq_attn.text.lines import read_lines
from seq2seq_attn.text.tokenizers.detokenize import detokenize
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer
from seq2seq_attn.text.tokenizers.words import measure_broken_lines

ENGLISH = [
    "A man can't swim; he isn't able to, and it's cold!",
    'A sign reads "Come on in" (and "stay").',
    "The dogs' bowls, the boy's T-shirt and a rock 'n' roll band.",
    "A black-and-white, two-year-old dog with a 3-4 inch tail, and/or 2,000 cats.",
    "He pays $5 for 50% off; #1 & #2.",
    "They cannot stop... can they?",
    "She said ‘no’ and “yes”, but we’re off: it’s 5:30.",
    "Im sure they dont want to; youre gonna see.",
    "Rock &amp; roll, a [sic] and 'quoted words' here.",
    "“Stop!” “Why?”",
]
GERMAN = [
    'Ein Mann, der „Hallo“ sagt; eine Frau (links) mit T-Shirt und "Hut".',
    "Hunde- und Katzenfutter für 50 % oder 5 € – z.B. 20-30 Stück.",
    "Wie geht's? Das war's: 3:2 für Hans' Team!",
    "Ein Bus - rot/weiß - fährt...",
    "Er sagt: ‚Ja‘ und »Nein«.",
]


OTHERS = [
    ("fr", "Y a-t-il un problème, est-ce que l'eau vient ?"),
    ("fr", "Attention : il dit « non » ; elle (Anne) dit oui, aujourd'hui !"),
    ("fr", "L'homme qu'il voit, aujourd'hui."),
    ("it", "L'uomo beve dell'acqua."),
    ("ca", "Els d'aquí."),
    ("ru", "Он сказал: «да»."),
    ("cs", "Ptá se: „Kde je voda?“"),
    ("pl", "„Gdzie”, pyta."),
    ("sv", "Hon frågar: ”Var är vattnet?”"),
    ("da", "Hun spørger: »Hvor er vandet?«"),
    ("ar", "تسأل، يوماً ما: «أين الماء؟»"),
    ("ur", "وہ پوچھتی ہے: ”پانی کہاں ہے؟“ پھر جاتی ہے۔"),
    ("hi", "वह पूछती है: “पानी कहाँ है?” फिर जाती है।"),
    ("bn", "সে যায়।"),
    ("am", "“ውሃው የት ነው?” ብላ፣ ትጠይቃለች።"),
]


@pytest.mark.parametrize(
    ("language", "line"),
    [*(("en", line) for line in ENGLISH), *(("de", line) for line in GERMAN), *OTHERS],
)
def test_lines_come_back(language, line):
    tokenizer = SpacyTokenizer(language)
    assert tokenizer.detokenize(tokenizer.tokenize(line)) == line


def test_an_apostrophe_does_not_close_a_quotation_of_backticks():
    assert detokenize(["``", "dogs", "'", "bowls", "''"], "en") == "``dogs' bowls''"


def test_the_share_of_lines_whose_words_get_spaces_inside():
    assert measure_broken_lines("zh", ["红色的球在桌子上。", "球"]) == 0.5
    assert measure_broken_lines("en", ["He 's here .", "It can't.", "A man."]) == 0.0
    assert measure_broken_lines("ca", ["Comportar-se bé."] * 3 + ["La casa."]) == 0.75
    assert measure_broken_lines("ru", ["Москва - большой город.", "Он / она", "Да."]) == 2 / 3


@pytest.mark.parametrize(
    "text", ["", "'", '"', "-", "- -", "' ' '", "“", ")", "/ #", "&", "€ % n't"]
)
def test_lone_marks(text):
    tokens = text.split()
    for language in ("en", "de", "fr", "ja"):
        assert detokenize(tokens, language).replace(" ", "") == "".join(tokens)


@pytest.mark.parametrize(
    ("split", "language"), [("val", "en"), ("val", "de"), ("test_2017_mscoco", "en")]
)
def test_multi30k_comes_back(multi30k_dir, split, language):
    lines = read_lines(multi30k_dir / f"{split}.{language}.gz")
    tokenizer = SpacyTokenizer(language)
    back = [tokenizer.detokenize(tokens) for tokens in tokenizer.tokenize_many(lines)]
    same = sum(a == b for a, b in zip(back, lines, strict=True)) / len(lines)
    assert same >= 0.98
    assert sacrebleu.corpus_bleu(back, [lines]).score > 99.9
