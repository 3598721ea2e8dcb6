"""The generator of captions: the committed corpus is its output and is sound; the corpora of
experiments."""

from itertools import chain

import pytest

from scripts.laboratory.captions import corpora
from scripts.laboratory.captions.corpora import CORPORA, write_embedded
from scripts.laboratory.captions.generator import CaptionPair, draw_splits
from scripts.laboratory.captions.lexicon import load_lexicon
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.text.captions import SPLITS, find_captions, tokenize_caption
from seq2seq_attn.text.lines import read_lines
from seq2seq_attn.text.links import parse_pharaoh

LEXICON = load_lexicon()


def read(folder=None):
    """The pairs of each split of a corpus in a folder, or of the committed one."""
    splits = find_captions(folder, "de", "en").items()
    return {
        split: [CaptionPair(*row) for row in zip(*map(read_lines, paths), strict=True)]
        for split, paths in splits
    }


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
    assert len({*committed["train"]}) == len(
        {*sources["train"]}
    )  # the translation is a function of the source


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
