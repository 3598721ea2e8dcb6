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
    splits = {}
    for split, paths in find_captions(folder, "de", "en").items():
        columns = [read_lines(path) for path in paths]
        splits[split] = [CaptionPair(*row) for row in zip(*columns, strict=True)]
    return splits


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
    for split, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert set(sources[split]).isdisjoint(sources[other])
    for split in ("valid", "test"):
        assert len(set(sources[split])) == len(sources[split])


def test_a_translation_is_a_function_of_its_source(pairs):
    assert len(set(pairs)) == len({pair.source for pair in pairs})


def test_links_cover_everything_but_commas_and_what_is_copied(pairs):
    names = {*chain(*LEXICON.first_names.values()), *LEXICON.cities, *LEXICON.surnames}
    num_copied = 0
    for pair in pairs:
        source = tokenize_caption(pair.source)
        target = tokenize_caption(pair.target)
        links = parse_pharaoh(pair.links)
        linked_sources = {i for i, _ in links}
        linked_targets = {j for _, j in links}
        assert max(linked_sources) < len(source)
        assert max(linked_targets) < len(target)
        assert linked_sources >= {i for i, word in enumerate(source) if word != ","}, pair
        assert linked_targets >= {j for j, word in enumerate(target) if word != ","}, pair
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
    settings = {
        "data.source_dir": str(tmp_path),
        "data.data_dir": str(tmp_path / "data"),
        "data.links": "gold",
    }
    prepared = prepare_corpus(load_config(["bottleneck/joined"], settings))
    train = prepared.pairs("train")
    assert len(train) == 16 * 6 * (420 // 21)
    assert train.source_lengths.min() >= 4
    assert train.source_lengths.max() > 40
    assert all(len(train.links(index)) for index in range(len(train)))
