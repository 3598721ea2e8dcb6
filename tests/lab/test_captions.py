"""The generator of captions: the committed corpus is its output and is sound; the corpora of experiments."""

import re
from collections import Counter
from itertools import chain, pairwise

import pytest

from scripts.laboratory.captions import corpora, generator
from scripts.laboratory.captions.corpora import CORPORA, join_pairs, surnames_of, write_embedded
from scripts.laboratory.captions.generator import CaptionPair, draw_splits
from scripts.laboratory.captions.groups import mixed_groups
from scripts.laboratory.captions.lexicon import load_lexicon
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.text.captions import SPLITS, find_captions, tokenize_caption
from seq2seq_attn.text.corpus import read_lines
from seq2seq_attn.text.links import parse_pharaoh

LEXICON = load_lexicon()


def read(folder=None):
    """The pairs of each split of a corpus in a folder, or of the committed one."""
    splits = find_captions(folder, "de", "en").items()
    return {split: [CaptionPair(*row) for row in zip(*map(read_lines, paths), strict=True)] for split, paths in splits}


@pytest.fixture(scope="module")
def committed():
    return read()


@pytest.fixture(scope="module")
def pairs(committed):
    return committed["train"]


def test_the_generator_writes_the_committed_lines(tmp_path, committed):
    write_embedded(tmp_path)
    assert read(tmp_path) == committed


def test_no_split_has_a_source_of_another(committed):
    sources = {split: [pair.source for pair in committed[split]] for split in SPLITS}
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert not {*sources[one]} & {*sources[other]}
    assert all(len({*sources[split]}) == len(sources[split]) for split in ("valid", "test"))
    assert len({*committed["train"]}) == len({*sources["train"]})  # the translation is a function of the source


def test_lengths_are_spread_evenly(pairs):
    counts = Counter(len(tokenize_caption(pair.source)) for pair in pairs)
    assert sorted(counts) == [*range(4, 31)]
    assert max(counts.values()) - min(counts.values()) <= 1


def test_links_cover_everything_but_commas_and_what_is_copied(pairs):
    names = {*chain(*LEXICON.first_names.values()), *LEXICON.cities, *LEXICON.surnames}
    num_copied = 0
    for pair in pairs:
        source, target = tokenize_caption(pair.source), tokenize_caption(pair.target)
        links = parse_pharaoh(pair.links)
        assert all(i < len(source) and j < len(target) for i, j in links)
        assert {i for i, word in enumerate(source) if word != ","} <= {i for i, _ in links}, pair
        assert {j for j, word in enumerate(target) if word != ","} <= {j for _, j in links}, pair
        for i, word in enumerate(source):
            if word.isdigit() or word in names:
                num_copied += 1
                assert any(target[j] in (word, f"{word}'s") for k, j in links if k == i), pair
    assert num_copied > 500


def test_text_is_clean(pairs):
    for pair in pairs:
        for text in (pair.source, pair.target):
            assert text == " ".join(text.split())
            assert text[0] == text[0].upper()
            assert text[-1] in ".?"
            assert all(not (a == "," and b in ",.?") for a, b in pairwise(tokenize_caption(text))), text
        assert not re.search(r"\b[Aa] [aeiou](?!ni)", pair.target), pair.target
        assert not re.search(r"\b[Aa]n [^aeiou]", pair.target), pair.target


def test_german_articles_agree_in_gender(pairs):
    """No article directly before a singular noun has a form that its gender lacks; an oracle apart from the grammar."""
    forms = {
        "m": "der den dem des ein einen einem eines",
        "f": "die der eine einer",
        "n": "das dem des ein einem eines",
    }
    singular = {noun.de: noun.gender for noun in LEXICON.nouns if noun.de != noun.plural}
    weak = {noun.weak for noun in LEXICON.nouns if noun.weak}
    plurals = {noun.plural for noun in LEXICON.nouns} | {noun.plural + "n" for noun in LEXICON.nouns}
    articles = set(" ".join(forms.values()).split())
    num_checked = 0
    for pair in pairs:
        tokens = ["", *tokenize_caption(pair.source)]
        for before, article, noun in zip(tokens, tokens[1:], tokens[2:], strict=False):
            article = article.lower()
            is_pronoun = before == "," or before in ("in", "an", "auf", "mit")
            if article in articles and not is_pronoun and noun in singular and noun not in weak | plurals:
                assert article in forms[singular[noun]].split(), f"{article} {noun}: {pair.source}"
                num_checked += 1
    assert num_checked > 300


def test_more_sentences_than_there_are_of_a_length_are_refused(monkeypatch):
    monkeypatch.setattr(generator, "_MAX_TRIES", 3)
    with pytest.raises(ValueError, match="1000"):
        draw_splits({"valid": 1000}, (4, 4))


def test_groups_cover_every_caption_once_with_equally_many_of_each_size():
    groups = mixed_groups(100, (1, 2, 3), seed="1/0")
    assert sorted(chain(*groups)) == [*range(100)]
    assert Counter(map(len, groups)) == {1: 16 + 4, 2: 16, 3: 16}
    assert groups != mixed_groups(100, (1, 2, 3), seed="1/1")


def test_joined_pairs_keep_the_links_of_their_words(pairs):
    [joined] = join_pairs(pairs, [(3, 0)])
    assert joined.source == f"{pairs[3].source} {pairs[0].source}"

    def linked(pair):
        words = tokenize_caption(pair.source), tokenize_caption(pair.target)
        return [(words[0][i], words[1][j]) for i, j in parse_pharaoh(pair.links)]

    assert linked(joined) == linked(pairs[3]) + linked(pairs[0])


@pytest.fixture
def small(monkeypatch):
    """Corpora of few captions."""
    sizes = {"train": 420, "valid": 20, "test": 200}
    monkeypatch.setattr(corpora, "draw_splits", lambda _, lengths: draw_splits(sizes, lengths))


def test_the_joined_corpus_is_prepared_with_its_links(small, tmp_path):
    CORPORA["bottleneck-joined"](tmp_path)
    folders = f"data.source_dir={tmp_path}", f"data.data_dir={tmp_path / 'data'}"
    prepared = prepare_corpus(load_config(["bottleneck/joined"], [*folders, "data.links=gold"]))
    train = prepared.pairs("train")
    assert len(train) == 16 * 6 * (420 // 21)
    assert train.source_lengths.min() >= 4
    assert train.source_lengths.max() > 40
    assert all(len(train.links(index)) for index in range(len(train)))


def test_names_that_are_held_out_are_in_test_pairs_alone(small, tmp_path):
    CORPORA["unseen-names"](tmp_path)
    splits, held_out = read(tmp_path), {*read_lines(tmp_path / "held-out.txt")}
    assert all(held_out & {*surnames_of(pair.target)} for pair in splits["test"])
    kept = " ".join(f"{pair.source} {pair.target}" for split in ("train", "valid") for pair in splits[split])
    assert splits["train"]
    assert not [name for name in held_out if name in kept]
