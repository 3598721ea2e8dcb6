"""Translations with a glossary, by models of random weights, which write no term by themselves."""

from dataclasses import replace

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.data.line_facts import LineFacts
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.glossary import parse_glossary, split_terms
from seq2seq_attn.text.vocab import EOS
from tests.toy_run import SOURCE, make_toy_run, toy_config

ROWS = ["Hund\tmeadow", "Eine Frau\tbench", "Frau\tdog", "Kind\twater", "Zebra\tpark"]
EAGERNESS = {"sentencepiece": 4.0, "spacy": 2.0}
"""what is added to the model's bias of EOS, so that the length limit cuts no translation"""


def load_toy(folder, tokenizer, lowercase=False):
    config = toy_config(tokenizer=tokenizer)
    config.data.tokenizer.lowercase = lowercase
    translator = load(make_toy_run(folder, config).path, device="cpu")
    with torch.no_grad():
        translator.model.output.projection.bias[EOS] += EAGERNESS[tokenizer]
    return translator


@pytest.fixture(scope="module", params=EAGERNESS)
def translator(request, module_path):
    return load_toy(module_path / request.param, request.param)


def glossary(*rows):
    return parse_glossary("terms.tsv", rows)


def contains(text, term):
    words = split_terms(text, "en")
    wanted = split_terms(term, "en")
    starts = range(len(words) - len(wanted) + 1)
    return any(words[start : start + len(wanted)] == wanted for start in starts)


def is_same(one, other):
    return (one.text, one.log_prob, one.score) == (other.text, other.log_prob, other.score)


def test_lines_with_a_source_term_have_its_target_term(translator):
    translated = translator.translate(SOURCE, glossary=glossary(*ROWS))
    for index, term in ((0, "meadow"), (2, "bench"), (2, "water")):
        assert contains(translated[index].text, term)
    assert not contains(translated[2].text, "dog")


@pytest.mark.parametrize("batch_size", [1, 16])
def test_lines_without_a_term_are_translated_as_without_a_glossary(translator, batch_size):
    lines = [*SOURCE, "", "Drei Männer."]
    expected = translator.translate(lines, batch_size=batch_size)
    translated = translator.translate(lines, glossary=glossary(*ROWS), batch_size=batch_size)
    for index in (1, 3, 4, 5, 6):
        assert is_same(translated[index], expected[index])


def test_a_translation_that_has_the_term_is_kept(translator):
    [expected] = translator.translate(SOURCE[:1])
    word = split_terms(expected.text, "en")[0]
    [translated] = translator.translate(SOURCE[:1], glossary=glossary(f"Hund\t{word}"))
    assert is_same(translated, expected)


def test_each_of_several_translations_has_the_term(translator):
    [translated] = translator.translate_n_best(
        SOURCE[:1], n_best=3, glossary=glossary("Hund\twater")
    )
    for translation in translated:
        assert contains(translation.text, "water")


def test_only_the_segment_with_the_term_has_the_target_term(translator):
    shorter = translator.with_max_source_length(12)
    line = f"{SOURCE[1]} {SOURCE[0]}"
    [expected] = shorter.translate([line])
    [translated] = shorter.translate([line], glossary=glossary("Hund\twater"))
    assert translated.text != expected.text
    assert translated.text.split()[0] == expected.text.split()[0]


def test_a_line_is_not_split_inside_a_term(translator, monkeypatch):
    monkeypatch.setattr(translator, "line_facts", LineFacts(one_sentence=True))
    rows = glossary("Frau. Ein\twater")
    line = "Ein Hund. Eine Frau. Ein Kind."
    [first] = translator.translate([line[:9]])
    [translated] = translator.translate([line], glossary=rows)
    assert contains(translated.text, "water")
    assert translated.text.startswith(first.text)


def test_the_length_limit_leaves_room_for_terms(translator):
    options = {"max_length_ratio": 0.1, "max_length_extra": 0, "glossary": glossary("Hund\twater")}
    [translated] = translator.translate(SOURCE[:1], **options)
    assert contains(translated.text, "water")


@pytest.mark.parametrize(
    ("texts", "num_warnings"),
    [("A dog. Water water.|A water.", 0), ("A water. A dog.", 0), ("犬。water", 1)],
)
def test_a_term_behind_the_end_comes_last_with_a_warning(
    translator, monkeypatch, texts, num_warnings
):
    [plain] = translator.translate(SOURCE[:1])
    found = [replace(plain, text=text) for text in texts.split("|")]
    drafts = iter([[replace(plain, text="A dog.")], found])
    monkeypatch.setattr(translator, "_translate_segments", lambda *_: [next(drafts)])
    rows = glossary("Hund\twater")
    [best] = translator.translate(SOURCE[:1], unk="forbid", glossary=rows)
    assert (best.text, len(best.warnings)) == (found[-1].text, num_warnings)


@pytest.mark.parametrize("num_right", [0, 1])
def test_a_term_linked_to_other_words_comes_last_with_a_warning(translator, monkeypatch, num_right):
    [plain] = translator.translate(SOURCE[:1])
    hund = next(index for index, token in enumerate(plain.source_tokens) if "H" in token)
    tokens = translator.target_tokenizer.tokenize("A water.")
    found = []
    for index in [hund + 4, hund][: num_right + 1]:
        links = [index] * len(tokens)
        found.append(replace(plain, text="A water.", tokens=tokens, heaviest=links))
    drafts = iter([[plain], found])
    monkeypatch.setattr(translator, "_translate_segments", lambda *_: [next(drafts)])
    rows = glossary("Hund\twater")
    [best] = translator.translate(SOURCE[:1], unk="forbid", glossary=rows)
    assert (best.heaviest, len(best.warnings)) == (found[-1].heaviest, 1 - num_right)


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_the_beam_is_as_wide_as_the_terms_need(translator, beam_size):
    rows = glossary("Hund\tpark bench")
    [translated] = translator.translate(SOURCE[:1], glossary=rows, beam_size=beam_size)
    assert contains(translated.text, "park bench")


@pytest.mark.parametrize("method", ["greedy", "sample", "mbr", "diverse"])
def test_a_method_that_cannot_require_says_so(translator, method):
    with pytest.raises(UsageError, match=f"method='{method}'"):
        translator.translate(SOURCE, method=method, glossary=glossary(*ROWS))


@pytest.mark.parametrize(
    ("row", "value"),
    [("Hund\t日本", "日本"), ("Frau\tdog", "Frau")],
)
def test_a_row_that_cannot_be_kept_is_named(translator, row, value):
    with pytest.raises(UserError, match=rf"terms\.tsv, line 2: '{value}'"):
        translator.translate(SOURCE, glossary=glossary("Frau\tbench", row))


def test_equal_rows_are_one_row(translator):
    once = translator.translate(SOURCE, glossary=glossary(ROWS[0]))
    twice = translator.translate(SOURCE, glossary=glossary(ROWS[0], ROWS[0]))
    assert all(map(is_same, once, twice))


@pytest.mark.parametrize("lowercase", [False, True])
def test_case_counts_as_in_the_tokens(tmp_path, lowercase):
    translator = load_toy(tmp_path / "toy", "spacy", lowercase=lowercase)
    [translated] = translator.translate(SOURCE[:1], glossary=glossary("hund\twater"))
    assert contains(translated.text, "water") == lowercase
