"""A run that was trained on single sentences translates each sentence of a line."""

import gzip
from itertools import islice

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.data.line_facts import LineFacts
from seq2seq_attn.errors import UsageError
from tests.toy_run import SOURCE, make_toy_run, toy_config
from tests.translate.conftest import assert_same, texts

SINGLE = LineFacts(one_sentence=True)


@pytest.fixture(scope="module")
def translator(module_path):
    path = module_path / "single"
    return load(make_toy_run(path, facts=SINGLE).path, device="cpu")


@pytest.mark.parametrize("space", [" ", "  ", "\u00a0"])
def test_sentences_are_translated_alone_and_joined_by_the_space_of_the_line(translator, space):
    [joined] = translator.translate([space.join(SOURCE)])
    parts = translator.translate(SOURCE)
    assert joined.text == space.join(texts(parts))
    assert joined.tokens == [token for part in parts for token in part.tokens]
    assert joined.log_prob == pytest.approx(sum(part.log_prob for part in parts), rel=1e-4)
    assert joined.source_tokens[:-1] == [
        token for part in parts for token in part.source_tokens[:-1]
    ]
    np.testing.assert_allclose(joined.attention.sum(axis=1), 1.0, atol=1e-5)
    assert joined.heaviest == joined.attention[: len(joined.tokens)].argmax(axis=1).tolist()


def test_control_characters_between_sentences_become_spaces(translator):
    first, second = texts(translator.translate(SOURCE[:2]))
    [joined] = translator.translate([f"{SOURCE[0]}\t\n{SOURCE[1]}"])
    assert joined.text == f"{first}  {second}"


@pytest.mark.parametrize("sentence", [*SOURCE, "Dr. Müller rennt.", "Hund", "...", "  "])
def test_a_single_sentence_is_translated_as_before(translator, sentence):
    assert_same(
        translator.translate([sentence]), translator.translate([sentence], split_sentences="off")
    )


def test_off_translates_the_whole_line(translator, tmp_path):
    line = "Ein Hund. Eine Frau."
    unsplit = translator.translate([line], split_sentences="off")
    [split] = translator.translate([line])
    assert unsplit[0].log_prob != pytest.approx(split.log_prob, rel=1e-2)
    of_texts = load(make_toy_run(tmp_path / "texts").path, device="cpu")
    assert_same(of_texts.translate([line]), unsplit)


def test_sentences_that_an_unsplit_line_loses_have_a_warning(translator):
    options = {"prefix": "A dog. A cat", "max_length_extra": 0, "max_length_ratio": 0.01}
    lines = ["Ein Hund. Eine Frau. Ein Kind.", "Ein Hund. Eine Frau.", "Ein Hund rennt."]
    lost, whole, single = translator.translate(lines, split_sentences="off", **options)
    assert len(lost.warnings) == 1
    assert whole.warnings == single.warnings == ()


def test_another_value_is_refused(translator):
    with pytest.raises(UsageError, match="split_sentences"):
        translator.translate(SOURCE, split_sentences="on")


def test_a_sentence_longer_than_the_limit_is_cut_into_pieces(translator):
    long = "Hund " * 50
    [joined] = translator.translate([f"{SOURCE[0]} {long}."])
    first, second = texts(translator.translate([SOURCE[0], f"{long}."]))
    assert joined.text == f"{first} {second}"


@pytest.mark.parametrize(("language", "separator"), [("zh", ""), ("th", " ")])
def test_sentences_are_joined_as_the_target_language_writes(tmp_path, language, separator):
    config = toy_config(target_language=language)
    translator = load(make_toy_run(tmp_path / "run", config, facts=SINGLE).path, device="cpu")
    parts = texts(translator.translate(SOURCE[:2]))
    assert texts(translator.translate([" ".join(SOURCE[:2])])) == [separator.join(parts)]


@pytest.mark.parametrize(("language", "separator"), [("zh", ""), ("th", ""), ("en", " ")])
def test_pieces_of_a_sentence_are_joined_as_the_target_language_writes(
    tmp_path, language, separator
):
    config = toy_config(target_language=language, tokenizer="spaces")
    translator = load(make_toy_run(tmp_path / "run", config).path, device="cpu")
    pieces = ["Hund " * 30, "Wiese " * 10]
    parts = texts(translator.translate(pieces))
    assert all(parts)
    assert texts(translator.translate(["".join(pieces)])) == [separator.join(parts)]


def test_sentences_without_a_space_between_them_get_one(translator):
    first, second = texts(translator.translate(["狗睡觉。", "猫跑步。"]))
    assert texts(translator.translate(["狗睡觉。猫跑步。"])) == [f"{first} {second}"]


def test_n_best_joins_rank_by_rank_and_the_prefix_begins_the_line(translator):
    line = " ".join(SOURCE[:2])
    ranked = translator.translate_n_best([SOURCE[0], SOURCE[1], line], n_best=2)
    for first, second, joined in zip(*ranked, strict=True):
        assert joined.text == f"{first.text} {second.text}"
    [joined] = translator.translate([line], prefix="A dog")
    [first] = translator.translate(SOURCE[:1], prefix="A dog")
    [second] = translator.translate(SOURCE[1:2])
    assert joined.text == f"{first.text} {second.text}"


def test_a_translation_shorter_than_in_training_has_a_warning(tmp_path):
    facts = LineFacts(one_sentence=True, ratio=1.0, shortness=0.5)
    run = make_toy_run(tmp_path / "run", facts=facts)
    translator = load(run.path, device="cpu")
    options = {"max_length_ratio": 0.01, "max_length_extra": 2}  # at most two tokens
    short, joined, blank = translator.translate([SOURCE[0], " ".join(SOURCE[:2]), ""], **options)
    assert len(short.warnings) == 1
    assert len(joined.warnings) == 2
    assert blank.warnings == ()
    assert (
        load(make_toy_run(tmp_path / "other").path, device="cpu")
        .translate(SOURCE, **options)[0]
        .warnings
        == ()
    )


@pytest.mark.parametrize("num_lines", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_no_caption_of_a_line_is_lost(translator, multi30k_dir, num_lines):
    with gzip.open(multi30k_dir / "test_2016_flickr.de.gz", "rt", encoding="utf-8") as file:
        ended = (line.strip() for line in file if line.strip().endswith("."))
        captions = list(islice(ended, 2 * num_lines + 4))
    lines = []
    for number in range(num_lines):
        lines.append(captions[2 * number : 2 * number + 2 + number % 3])
    options = {"beam_size": 1, "batch_size": 1}  # one by one, so that no tie is broken otherwise
    alone = dict(zip(captions, texts(translator.translate(captions, **options)), strict=True))
    joined = texts(translator.translate(map(" ".join, lines), **options))
    assert joined == [" ".join(filter(None, map(alone.get, line))) for line in lines]
