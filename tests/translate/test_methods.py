"""Prefixes, samples and minimum Bayes risk by a translator."""

import pytest
from sacrebleu.metrics.chrf import CHRF

from seq2seq_attn import load
from seq2seq_attn.search.mbr import least_risk
from tests.toy_run import SOURCE, TARGET, make_toy_run
from tests.translate.conftest import texts

LINES = [*SOURCE, "", "Ein Zebra rennt.", "Hund " * 150]


@pytest.fixture(scope="module")
def translator(module_path):
    return load(make_toy_run(module_path / "toy").path, device="cpu")


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 3}, {"method": "sample"}])
def test_a_translation_begins_with_the_prefix(translator, options):
    for prefix in (" ".join(TARGET[0].split()[:2]), "Zebra"):
        translated = texts(translator.translate(LINES, prefix=prefix, **options))
        for line, text in zip(LINES, translated, strict=True):
            assert text.startswith(prefix) if line else text == ""
            if prefix == "Zebra" and line:
                assert text.count(prefix) == 1


def test_minimum_bayes_risk_takes_the_sample_that_the_others_resemble_most():
    drawn = ["a dog runs", "a dog ran", "a dog runs", "the cat sleeps"]
    assert least_risk(["", "", "", "a dog"], n_best=1)[0][0] == 0
    chrf = CHRF()
    expected = []
    for number, text in enumerate(drawn[:2]):
        scores = [chrf.sentence_score(text, [other]).score for other in drawn]
        expected.append((number, pytest.approx(sum(scores) / 4)))
    assert least_risk(drawn, n_best=2) == expected
    similar = [
        "the brown dog runs in the park",
        "a brown dog runs in the park",
        "a brown dog runs in a park",
    ]
    best, *_, worst = least_risk(["Zzz", *similar, "Zzz"], n_best=4)
    assert (best[0], worst[0]) == (2, 0)  # not the most frequent one


def test_a_translator_chooses_among_its_samples(translator):
    found = translator.translate(SOURCE, method="mbr", num_samples=6, temperature=2.0)
    samples = translator.translate_n_best(SOURCE, method="sample", n_best=6, temperature=2.0)
    for translation, drawn in zip(found, samples, strict=True):
        [(best, _)] = least_risk(texts(drawn), 1)
        assert translation.text == drawn[best].text
