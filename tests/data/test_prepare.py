"""From files to a prepared corpus, and when one is reused."""

import os
import shutil
import time
from functools import partial
from pathlib import Path

import pytest

from seq2seq_attn.config import config_from_dict
from seq2seq_attn.data import builder, vocabs
from seq2seq_attn.data.builder import SplitBuilder
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_lines
from seq2seq_attn.text import captions
from seq2seq_attn.text.links import parse_pharaoh
from seq2seq_attn.text.tokenizers.factory import build_tokenizers
from seq2seq_attn.text.vocab import UNK

TRAIN = [
    ("Ein Hund rennt .", "A dog runs ."),
    ("Eine Katze schläft .", "A cat sleeps ."),
    ("Ein Hund rennt .", "A dog runs ."),
    ("", "blank source"),
    ("eins zwei drei vier fünf sechs", "too long"),
    ("a", "x y z w"),
    ("\u2028 \t", "blank to the tokenizer"),
    ("<pad> <eos>", "<unk> ."),
]
VALID = [
    ("Ein Zebra rennt .", "A zebra runs ."),
    ("", ""),
    ("Eine Katze schläft .", "A cat sleeps ."),
]


def pairs_of(prepared, split):
    return list(zip(*prepared.text(split), strict=True))


@pytest.fixture
def make_config(files_config, write_pairs):
    return partial(
        files_config,
        train=write_pairs("train", TRAIN),
        valid=write_pairs("valid", VALID),
        test={"more": write_pairs("more", VALID[:1])},
        max_length=5,
        max_length_ratio=3.0,
        tokenizer={"name": "spaces"},
    )


@pytest.fixture
def prepared(make_config):
    return prepare_corpus(make_config(tokenizer={"name": "spacy"}))


def test_pairs_are_the_ids_of_the_tokens_of_the_text(prepared):
    assert prepared.splits == ["train", "valid", "more"]
    assert prepared.test_splits == ["more"]
    assert pairs_of(prepared, "train") == TRAIN[:3]
    assert pairs_of(prepared, "valid") == VALID
    for split in prepared.splits:
        pairs = prepared.pairs(split)
        for i, (source, target) in enumerate(pairs_of(prepared, split)):
            tokens = prepared.source_tokenizer.tokenize(source)
            assert pairs.source_ids[i].tolist() == prepared.source_vocab.ids_of(tokens)
            tokens = prepared.target_tokenizer.tokenize(target)
            assert pairs.target_ids[i].tolist() == prepared.target_vocab.ids_of(tokens)
    assert prepared.links("train") is None


def test_the_vocabulary_holds_the_tokens_of_the_kept_training_pairs(prepared):
    assert "Hund" in prepared.source_vocab
    for token in ("Zebra", "sechs", "<", "x"):
        assert token not in prepared.source_vocab
    assert prepared.pairs("valid").source_ids[0].tolist().count(UNK) == 1


def test_the_audit_counts_pairs_and_tokens(prepared):
    train = prepared.audit["train"]
    faults = {"blank": 2, "over_long": 2, "ratio_outliers": 1}
    kept = {"pairs_read": 8, "pairs_kept": 3, "duplicates": 1, "dropped": faults}
    assert train == train | faults | kept
    assert train["source"] == {"tokens": 12, "types": 7, "longest": 4, "oov_rate": 0.0}
    source = {"tokens": 8, "types": 7, "longest": 4, "oov_rate": 1 / 8}
    overlap = {"overlap_pairs": 1, "overlap_sources": 1, "source": source}
    valid = prepared.audit["valid"]
    assert valid == valid | {"pairs_kept": 3, "blank": 1, "copies": 0} | overlap


def test_noise_that_the_filter_names_leaves_the_training_text(files_config, write_pairs):
    pairs = [(f"Hund {i}", f"dog {i}") for i in range(40)]
    copies = [(source, source) for source, _ in pairs]
    segmented = ("un@@ bekannt", "unknown")
    train = write_pairs("train", [*copies, segmented, *pairs, pairs[0]])
    prepared = prepare_corpus(files_config(train=train, filter=["copies", "duplicates"]))
    train_pairs = pairs_of(prepared, "train")
    valid_pairs = pairs_of(prepared, "valid")
    assert len(valid_pairs) == 4  # a tenth; the copies take no source from the validation set
    assert sorted(train_pairs + valid_pairs) == sorted([segmented, *pairs])
    notes = [note for note in prepared.meta["notes"] if note.startswith("train")]
    assert [note.split()[1:3] for note in notes] == [["40", "copies"], ["1", "duplicates"]]


@pytest.mark.parametrize("split", ["train", "valid", "extra"])
def test_a_damaged_row_is_left_out_and_noted(make_config, tmp_path, split):
    rows = [f"Hund {i}\tdog {i}" for i in range(30)]
    write_lines(tmp_path / "rows.tsv", ["de\ten", *rows[:20], "Hund", *rows[20:]])
    path = str(tmp_path / "rows.tsv")
    prepared = prepare_corpus(make_config(**{split: [path] if split == "extra" else path}))
    assert any("rows.tsv: 1 damaged" in note and "22" in note for note in prepared.meta["notes"])


@pytest.mark.parametrize(("header", "shown"), [("satz\tsentence", ["satz"]), ("de\ten", [])])
def test_a_first_row_that_may_be_a_header_is_shown(make_config, tmp_path, header, shown):
    write_lines(tmp_path / "rows.tsv", [header, *[f"Hund {i}\tdog {i}" for i in range(30)]])
    config = make_config(train=str(tmp_path / "rows.tsv"), columns=["1", "2"])
    notes = [note for note in prepare_corpus(config).meta["notes"] if "first pair" in note]
    assert len(notes) == len(shown)
    assert all(word in note for word, note in zip(shown, notes, strict=True))


def test_one_vocabulary_for_both_sides(make_config):
    prepared = prepare_corpus(make_config(vocab={"joint": True, "max_size": 5}))
    assert prepared.source_vocab == prepared.target_vocab
    assert prepared.source_vocab.tokens[4:] == [".", "A", "Ein", "Hund", "dog"]


def test_reused_when_nothing_that_matters_changed(make_config, write_pairs, tmp_path):
    first = prepare_corpus(make_config())
    stamps = {path.name: path.stat().st_mtime_ns for path in first.directory.iterdir()}
    same = make_config(train=write_pairs("elsewhere", TRAIN), source_dir=str(tmp_path))
    same.model.hidden_size = 3
    assert prepare_corpus(same).directory == first.directory
    assert {path.name: path.stat().st_mtime_ns for path in first.directory.iterdir()} == stamps


def test_made_again_when_it_matters(make_config, tmp_path):
    changes = [{}, {"max_length": 6}, {"vocab": {"min_frequency": 2}}, {"test": {}}]
    changes.append({"tokenizer": {"name": "characters"}, "max_length": 90})
    folders = {prepare_corpus(make_config(**change)).directory for change in changes}
    write_lines(tmp_path / "valid.de", ["neu", "", "Text"])
    changed = prepare_corpus(make_config())
    assert len({*folders, changed.directory}) == len(changes) + 1
    assert changed.text("valid")[0] == ["neu", "", "Text"]


@pytest.mark.parametrize(
    ("name", "replace"),
    [
        ("valid.target.txt", os.mkfifo),
        ("train.source.ids", Path.touch),
        ("manifest.json", Path.touch),
    ],
)
def test_a_damaged_folder_is_made_again_with_a_notice(make_config, name, replace, caplog):
    caplog.set_level("INFO")
    first = prepare_corpus(make_config()).directory
    whole = {path.name: path.read_bytes() for path in first.iterdir()}
    (first / name).unlink()
    replace(first / name)
    caplog.clear()
    assert prepare_corpus(make_config()).directory == first
    assert {path.name: path.read_bytes() for path in first.iterdir()} == whole
    assert name in caplog.messages[0]


@pytest.mark.parametrize(
    "put",
    [
        Path.touch,
        partial(Path.symlink_to, target="elsewhere"),
        partial(Path.symlink_to, target="/"),
    ],
)
def test_a_file_or_link_in_place_of_the_folder_is_replaced(make_config, put):
    first = prepare_corpus(make_config()).directory
    shutil.rmtree(first)
    put(first)
    assert prepare_corpus(make_config()).directory == first
    assert [*first.parent.iterdir()] == [first]
    assert not first.is_symlink()


def test_a_half_written_folder_is_never_used(make_config, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(SplitBuilder, "write_ids", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare_corpus(make_config())
    assert list((tmp_path / "data" / "prepared").iterdir()) == []
    monkeypatch.undo()
    # what a kill leaves
    killed = tmp_path / "data" / "prepared" / ".files-123456789abc.0123abcd.tmp"
    killed.mkdir()
    (killed / "meta.json").write_text("{}")
    prepare_corpus(make_config())
    assert killed.exists()  # it may belong to a running process
    os.utime(killed, (time.time() - 90_000,) * 2)
    prepare_corpus(make_config(max_length=6))
    assert not killed.exists()


def test_two_at_once_give_one_folder(make_config, monkeypatch):
    real = SplitBuilder.write_ids
    others = []

    def overtaken(*arguments):
        if not others:
            others.append(None)
            others.append(prepare_corpus(make_config()))
        real(*arguments)

    monkeypatch.setattr(SplitBuilder, "write_ids", overtaken)
    mine = prepare_corpus(make_config())
    assert mine.directory == others[1].directory
    assert [path.name for path in mine.directory.parent.iterdir()] == [mine.directory.name]


@pytest.mark.parametrize("name", ["spacy", "sentencepiece"])
def test_the_same_bytes_from_chunks_of_any_size(make_config, tmp_path, monkeypatch, name):
    def prepare_anew(folder, **data):
        tokenizer = {"name": name, "vocab_size": 60}
        config = make_config(
            data_dir=str(tmp_path / folder), tokenizer=tokenizer, max_length=30, **data
        )
        return {path.name: path.read_bytes() for path in prepare_corpus(config).directory.iterdir()}

    expected = prepare_anew("whole")
    for max_pairs, max_characters in ((1, 10**9), (3, 10**9), (10**9, 25)):
        monkeypatch.setattr(builder, "MAX_PAIRS", max_pairs)
        monkeypatch.setattr(builder, "MAX_CHARACTERS", max_characters)
        assert prepare_anew(f"{max_pairs}") == expected
    if name == "sentencepiece":
        assert prepare_anew("processes", num_processes=2) == expected


def test_text_that_changes_meanwhile_is_not_stored(make_config, tmp_path, monkeypatch):
    def build(*arguments):
        write_lines(tmp_path / "valid.de", ["neu", "", "Text"])
        return build_tokenizers(*arguments)

    monkeypatch.setattr(vocabs, "build_tokenizers", build)
    with pytest.raises(UserError, match="text changed while it was prepared"):
        prepare_corpus(make_config())
    assert list((tmp_path / "data" / "prepared").iterdir()) == []
    assert prepare_corpus(make_config()).text("valid")[0] == ["neu", "", "Text"]


def test_sentencepiece_learns_from_a_sample_of_a_big_corpus(
    make_config, tmp_path, write_pairs, monkeypatch
):
    lines = [f"{number} abcdef" for number in range(400)]
    trained_on = []

    def build(source_lines, target_lines, data):
        trained_on.append((list(source_lines), list(target_lines)))
        return build_tokenizers(*trained_on[-1], data)

    monkeypatch.setattr(vocabs, "build_tokenizers", build)
    settings = {"train": write_pairs("big", [*zip(lines, lines, strict=True)]), "max_length": 30}
    settings["tokenizer"] = {"name": "sentencepiece", "vocab_size": 24}
    for number, most in enumerate((400, 100, 100)):
        monkeypatch.setattr(vocabs, "MAX_TRAINING_LINES", most)
        prepare_corpus(make_config(**settings, data_dir=str(tmp_path / f"sample{number}")))
    (whole, _), sample, again = trained_on
    assert whole == lines
    assert sample == again
    assert sample[0] == sample[1] == [line for line in lines if line in set(sample[0])]
    assert 60 < len(sample[0]) < 140
    assert sample[0] != lines[: len(sample[0])]


def test_bad_bytes_are_found_before_any_work(make_config, tmp_path, monkeypatch):
    (tmp_path / "more.en").write_bytes(b"\xff\n")
    monkeypatch.setattr(vocabs, "build_tokenizers", None)
    with pytest.raises(UserError, match=r"more\.en, line 1"):
        prepare_corpus(make_config(test={"more": str(tmp_path / "more")}))


@pytest.mark.parametrize("text", ["", "de\ten\n", "\nde\ten\n\tA target alone.\n"])
def test_an_empty_validation_or_test_set_is_refused(make_config, tmp_path, text):
    path = tmp_path / "none.tsv"
    path.write_text(text)
    for texts in ({"valid": str(path)}, {"test": {"one": str(path)}}):
        with pytest.raises(UserError, match=r"none\.tsv"):
            prepare_corpus(make_config(**texts))
    assert not list((tmp_path / "data").rglob("*.ids"))


@pytest.mark.parametrize(
    "settings", [{"max_length": 1}, {"train": "uneven.tsv", "max_length_ratio": 2}]
)
def test_without_a_pair_to_train_on_there_is_no_corpus(make_config, in_tmp_path, settings):
    Path("uneven.tsv").write_text("de\ten\na b c\tx\nd e f\ty\n")
    with pytest.raises(UserError, match=r"train"):
        prepare_corpus(make_config(**settings))


@pytest.mark.parametrize(
    ("limit", "sizes"),
    [
        (2, (2, 2, 1)),
        ({"train": 3}, (3, 3, 1)),
        ({"train": 1, "valid": 1, "test": 1}, (1, 1, 1)),
        (1_000, (4, 3, 1)),
    ],
)
def test_a_limit_uses_the_first_pairs_of_each_split(make_config, limit, sizes):
    whole = prepare_corpus(make_config())
    limited = prepare_corpus(make_config(limit=limit))
    for split, size in zip(("train", "valid", "more"), sizes, strict=True):
        assert len(limited.pairs(split)) == size
        assert pairs_of(limited, split) == pairs_of(whole, split)[:size]
    assert ("Katze" in limited.source_vocab) == (sizes[0] > 1)
    assert not any(path.is_dir() for path in limited.directory.iterdir())


CAPTIONS = {"corpus": "captions", "limit": {"train": 40, "valid": 5, "test": 7}, "max_length": 12}


@pytest.fixture
def from_german(make_config):
    return prepare_corpus(make_config(**CAPTIONS))


@pytest.mark.parametrize("source", [{"source_language": "en"}, {"source_languages": ["en"]}])
def test_captions_from_english_have_the_links_in_the_other_direction(
    make_config, from_german, source
):
    from_english = prepare_corpus(make_config(**CAPTIONS, **source, target_language="de"))
    for split in ("valid", "test"):
        assert from_english.text(split) == from_german.text(split)[::-1]
        for line, other in zip(from_english.links(split), from_german.links(split), strict=True):
            assert sorted((j, i) for i, j in parse_pharaoh(line)) == sorted(parse_pharaoh(other))


@pytest.fixture
def own_captions(tmp_path):
    """A folder of captions with a pair in each split."""
    lines = {"de": "Ein Hund schläft.", "en": "A dog sleeps.", "links": "0-0 1-1 2-2"}
    for split in captions.SPLITS:
        for kind, line in lines.items():
            write_lines(tmp_path / "other" / f"{split}.{kind}", [line])
    return tmp_path / "other"


def test_other_captions_are_read_from_a_folder(make_config, own_captions):
    prepared = prepare_corpus(make_config(corpus="captions", source_dir=str(own_captions)))
    assert prepared.text("test") == (["Ein Hund schläft."], ["A dog sleeps."])
    assert prepared.links("test") == ["0-0 1-1 2-2"]


@pytest.mark.parametrize("languages", [{}, {"source_language": "en", "target_language": "de"}])
def test_damaged_links_of_captions_are_named(make_config, own_captions, languages):
    config = make_config(corpus="captions", source_dir=str(own_captions), **languages)
    write_lines(own_captions / "valid.links", ["0-0 1-x"])
    with pytest.raises(UserError, match=r"other/valid\.links, line 1"):
        prepare_corpus(config)
    (own_captions / "valid.links").unlink()
    with pytest.raises(UserError, match=r"other/valid\.links"):
        prepare_corpus(config)


def test_multi30k(multi30k_dir, tmp_path):
    data = {
        "data_dir": str(tmp_path),
        "source_dir": str(multi30k_dir),
        "tokenizer": {"name": "spaces"},
    }
    prepared = prepare_corpus(config_from_dict({"data": data}))
    sizes = [len(prepared.pairs(split)) for split in prepared.splits]
    assert sizes == [29_000, 1_014, 1_000, 1_000, 461]
    assert prepared.audit["train"]["duplicates"] == 3
    assert prepared.audit["test_2017_flickr"]["overlap_sources"] == 2
    # prepared once, neither the raw files nor the network are needed again
    for path in (tmp_path / "multi30k").iterdir():
        path.unlink()
    again = prepare_corpus(config_from_dict({"data": {**data, "source_dir": str(tmp_path)}}))
    assert again.directory == prepared.directory


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
@pytest.mark.parametrize("name", ["manifest.json", "source.vocab", "train.source.ids"])
def test_a_pipe_or_device_in_a_prepared_folder_is_refused_at_once(make_config, name, make):
    folder = prepare_corpus(make_config()).directory
    (folder / name).unlink()
    make(folder / name)
    with pytest.raises(UserError, match=name):
        PreparedCorpus(folder)
