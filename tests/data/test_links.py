"""Links between the tokens of training pairs: gold ones, and those of a Pharaoh file."""

import gzip
from functools import partial
from itertools import permutations, product

import pytest

from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import write_lines
from seq2seq_attn.text.captions import tokenize_caption
from seq2seq_attn.text.links import parse_pharaoh

PAIRS = [
    ("Ein Hund rennt.", "A dog runs."),
    ("", "a blank source is dropped"),
    ("Die Katze, müde, schläft.", "The cat sleeps."),
    ("Ball", "ball"),
]
LINKS = ["0-0 1-1 2-2", "", "0-0 1-1 3-2", ""]


@pytest.fixture
def make_config(tmp_path, files_config, write_pairs):
    write_lines(tmp_path / "train.links", LINKS)
    return partial(
        files_config, train=write_pairs("train", PAIRS), valid=write_pairs("valid", PAIRS)
    )


def links_of(prepared, index, split="train"):
    return [tuple(link) for link in prepared.pairs(split).links(index).tolist()]


def linked_tokens(prepared, index):
    source, target = (lines[index] for lines in prepared.text("train"))
    tokens = prepared.source_tokenizer.tokenize(source), prepared.target_tokenizer.tokenize(target)
    return {(tokens[0][s], tokens[1][t]) for s, t in links_of(prepared, index)}


def test_words_of_a_pharaoh_file_become_tokens(make_config, tmp_path):
    prepared = prepare_corpus(make_config(links=str(tmp_path / "train.links")))
    assert len(prepared.pairs("train")) == 3
    dog = {("Ein", "A"), ("Hund", "dog"), *product(["rennt", "."], ["runs", "."])}
    assert linked_tokens(prepared, 0) == dog
    # the comma belongs to the word that it is written to
    cat = {("Die", "The"), *product(["Katze", ","], ["cat"])}
    cat.update(product(["schläft", "."], ["sleeps", "."]))
    assert linked_tokens(prepared, 1) == cat
    assert links_of(prepared, 2) == []
    with pytest.raises(ValueError, match="no links"):
        prepared.pairs("valid").links(0)
    assert prepared.links("train") is None, "not gold"
    [note] = prepared.meta["notes"]
    assert note.startswith("links: 13 ")
    batch = prepared.pairs("train").batch([2, 0])
    assert batch.links_L3.tolist() == [[1, *link] for link in links_of(prepared, 0)]


def test_a_gzipped_file_and_another_one_are_prepared_anew(make_config, tmp_path):
    plain = prepare_corpus(make_config())
    assert plain.pairs("train").batch([0]).links_L3 is None
    path = tmp_path / "links.gz"
    path.write_bytes(gzip.compress(b"1-1\n\n\n0-0\n"))
    first = prepare_corpus(make_config(links=str(path)))
    assert linked_tokens(first, 0) == {("Hund", "dog")}
    assert links_of(first, 2) == [(0, 0)]
    path.write_bytes(gzip.compress(b"0-0\n\n\n0-0\n"))
    second = prepare_corpus(make_config(links=str(path)))
    assert linked_tokens(second, 0) == {("Ein", "A")}
    assert len({plain.directory, first.directory, second.directory}) == 3
    assert prepare_corpus(make_config()).directory == plain.directory


def test_links_stay_with_their_pairs_when_validation_pairs_are_set_aside(
    make_config, write_pairs, tmp_path
):
    lines = ["x " * number + "y" for number in range(40)]
    train = write_pairs("many", [(line, line) for line in lines])
    write_lines(tmp_path / "many.links", [f"{number}-{number}" for number in range(40)])
    path = str(tmp_path / "many.links")
    prepared = prepare_corpus(make_config(train=train, valid=None, links=path))
    sources, _ = prepared.text("train")
    assert len(sources) == 36
    for index, line in enumerate(sources):
        number = line.count("x")
        assert links_of(prepared, index) == [(number, number)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n", r"train\.links.* line 2"),
        ("0-0\n\n4-0\n\n", r"train\.links, line 3: link 4-0"),
        ("0-0\n\n0-0\n0-1\n", r"train\.links, line 4: link 0-1"),
        ("\n\n\n\n", r"data\.links=.*train\.links: no link"),
        ("0-0\n\n0:0\n\n", r"train\.links, line 3: alignment '0:0'"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(make_config, tmp_path, text, message):
    (tmp_path / "train.links").write_text(text)
    settings = {"links": str(tmp_path / "train.links"), "tokenizer": {"name": "spaces"}}
    for data in ({}, {"valid": None}):  # pairs are set aside
        with pytest.raises(UserError, match=message):
            prepare_corpus(make_config(**settings, **data))


def test_ibm_model_1_links_what_occurs_together(make_config, write_pairs):
    words = ["Hund", "Katze", "rennt", "müde"]
    pairs = [(f"{one} {two}", f"{two}! {one}!") for one, two in permutations(words, 2)]
    write_pairs("train", pairs)
    prepared = prepare_corpus(make_config(links="ibm1", tokenizer={"name": "spaces"}))
    for index in range(len(pairs)):
        assert links_of(prepared, index) == [(1, 0), (0, 1)]


def test_estimated_links_are_prepared_anew(make_config):
    prepared = prepare_corpus(make_config(links="ibm1"))
    assert prepare_corpus(make_config(links="ibm1")).directory == prepared.directory
    assert prepare_corpus(make_config()).directory != prepared.directory


@pytest.mark.parametrize(
    ("links", "error"),
    [("gold", UsageError), ("absent.links", UserError), ("x" * 5000, UserError)],
    ids=["gold", "absent", "long"],
)
def test_links_that_do_not_exist_are_refused(make_config, links, error):
    with pytest.raises(error, match=r"^data\.links="):
        prepare_corpus(make_config(links=links))


def test_gold_links_of_captions_are_those_between_their_words(files_config):
    prepared = prepare_corpus(files_config(corpus="captions", links="gold", limit=20))
    gold = prepared.links("train")
    assert gold is not None
    num_same = 0
    for index, (source, target) in enumerate(zip(*prepared.text("train"), strict=True)):
        source_words = tokenize_caption(source)
        target_words = tokenize_caption(target)
        if source_words == prepared.source_tokenizer.tokenize(
            source
        ) and target_words == prepared.target_tokenizer.tokenize(target):
            num_same += 1
            words = {(source_words[s], target_words[t]) for s, t in parse_pharaoh(gold[index])}
            assert linked_tokens(prepared, index) == words
    assert num_same > 10
