"""Extra training pairs (`data.extra`): what they change, what is refused, and which sentences are
denied."""

import pytest

from seq2seq_attn.data.audit import audit_report
from seq2seq_attn.data.draft import sentence_keys
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import write_lines
from seq2seq_attn.train.check import check_config

TRAIN = [("Ein Hund rennt.", "A dog runs."), ("Eine Katze schläft.", "A cat sleeps.")]
VALID = [("Ein Zebra rennt.", "A zebra runs.")]
TESTS = {
    "one": [("Ein Pferd trinkt.", "A horse drinks.")],
    "two": [("Ein Kind lacht.", "A child laughs.")],
}
MORE = [("Ein Vogel singt.", "A bird sings."), ("Ein Hund rennt.", "The dog is running.")]


@pytest.fixture
def make_config(files_config, write_pairs):
    def make(extra=(), **data):
        texts = {"train": write_pairs("train", TRAIN), "valid": write_pairs("valid", VALID)}
        test = {name: write_pairs(name, pairs) for name, pairs in TESTS.items()}
        own = {**texts, "test": test, "tokenizer": {"name": "sentencepiece", "vocab_size": 60}}
        return files_config(**{**own, "extra": list(extra), **data})

    return make


def pairs_of(prepared, split="train"):
    return list(zip(*prepared.text(split), strict=True))


def test_extra_pairs_are_training_pairs_and_tokenizers_stay_those_of_the_corpus(
    make_config, write_pairs
):
    alone = prepare_corpus(make_config())
    both = prepare_corpus(make_config([write_pairs("extra", MORE)]))
    assert pairs_of(both) == [*TRAIN, *MORE]
    for split in ("valid", *TESTS):
        assert pairs_of(both, split) == pairs_of(alone, split)
    tokens = both.source_tokenizer.tokenize(MORE[0][0])
    assert both.pairs("train").source_ids[2].tolist() == both.source_vocab.ids_of(tokens)
    model = "source.sentencepiece.model"
    assert (both.directory / model).read_bytes() == (alone.directory / model).read_bytes()
    assert (both.source_vocab, both.target_vocab) == (alone.source_vocab, alone.target_vocab)
    taking_part = prepare_corpus(make_config([write_pairs("extra", MORE)], extra_in_vocab=True))
    assert len(taking_part.source_vocab) > len(alone.source_vocab)


def test_several_texts_of_any_format_and_the_hash_that_covers_them(
    make_config, write_pairs, tmp_path
):
    (tmp_path / "more.tsv").write_text(
        "de\ten\nEin Wal taucht.\tA whale dives.\n", encoding="utf-8"
    )
    extra = [str(tmp_path / "more.tsv"), write_pairs("extra", MORE)]
    first = prepare_corpus(make_config(extra))
    assert pairs_of(first) == [*TRAIN, ("Ein Wal taucht.", "A whale dives."), *MORE]
    moved = [extra[0], write_pairs("moved", MORE)]
    assert prepare_corpus(make_config(moved)).directory == first.directory
    write_pairs("extra", MORE[:1])
    for other in (make_config(), make_config(extra), make_config(moved, extra_in_vocab=True)):
        assert prepare_corpus(other).directory != first.directory


def test_an_extra_table_with_other_columns_is_another_corpus(make_config, tmp_path):
    (tmp_path / "more.tsv").write_text("Ein Wal taucht.\tA whale dives.\n")
    extra = [str(tmp_path / "more.tsv")]
    first = prepare_corpus(make_config(extra, columns=[1, 2]))
    assert prepare_corpus(make_config(extra, columns=[2, 1])).directory != first.directory


@pytest.mark.parametrize(
    "pair",
    [
        VALID[0],
        ("etwas anderes", VALID[0][1]),
        (TESTS["one"][0][0], "something else"),
        (TESTS["two"][0][1], "the other way round"),
        ("ein  KIND lacht !", "other case, spaces and punctuation"),
    ],
)
def test_a_sentence_of_a_validation_or_test_set_is_denied_and_counted(
    make_config, write_pairs, pair
):
    prepared = prepare_corpus(make_config([write_pairs("extra", [pair, *MORE, pair])]))
    assert pairs_of(prepared) == [*TRAIN, *MORE]
    [note] = prepared.meta["notes"]
    assert "extra.de " in note
    assert ": 2 pairs; 2 dropped" in note
    assert note in audit_report(prepared)


def test_a_tab_in_the_text_of_one_source_is_a_space(make_config, write_pairs):
    test = write_pairs("tabs", [("Der Mann\trennt.", "The man\truns.")])
    pairs = [("Der Mann rennt.", "The man runs."), ("Der Mann.", "The man.")]
    prepared = prepare_corpus(make_config([write_pairs("extra", pairs)], test={"tabs": test}))
    assert pairs_of(prepared)[2:] == pairs[1:]


def test_vowel_signs_make_other_words_and_symbols_are_sentences_too():
    words = ["क्या?", "क्यों?", "ไม่", "ไม้", "😀", "😀 😀", "!"]
    assert len(set.union(*(sentence_keys([word]) for word in words))) == len(words)
    assert sentence_keys([" ", "", "क्या", "«क्या»"]) == sentence_keys(["क्या"])


def test_captions_keep_their_gold_links_for_evaluation(make_config, write_pairs):
    sizes = {"train": 40, "valid": 5, "test": 7}
    made_of = {
        "corpus": "captions",
        "limit": sizes,
        "tokenizer": {"name": "characters"},
        "max_length": 900,
    }
    prepared = prepare_corpus(make_config([write_pairs("extra", MORE)], **made_of))
    assert len(prepared.pairs("train")) == 42
    assert prepared.links("train") is None
    assert len(prepared.links("test")) == 7


def test_several_sources(make_config, tmp_path):
    lines = {"train": ["1"], "valid": ["2"], "test": ["Ein Pferd."], "more": ["ein pferd", "neu"]}
    for name, split_lines in lines.items():
        for language in ("de", "fr", "en"):
            is_whole = name == "test" or (language == "de" and split_lines[0] == "ein pferd")
            text = [line if is_whole else f"{line} {language}" for line in split_lines]
            write_lines(tmp_path / f"several-{name}.{language}", text)
    named = {name: str(tmp_path / f"several-{name}") for name in lines}
    data = {"train": named["train"], "valid": named["valid"], "test": {"test": named["test"]}}
    tokenizer = {"name": "characters"}
    config = make_config(
        [named["more"]], source_languages=["de", "fr"], tokenizer=tokenizer, **data
    )
    assert pairs_of(prepare_corpus(config)) == [("1 de\t1 fr", "1 en"), ("neu\tneu fr", "neu en")]


def test_what_is_refused(make_config, write_pairs):
    with pytest.raises(UserError, match=r"data\.extra: nothing"):
        check_config(make_config(["nothing"]))
    extra = write_pairs("extra", MORE)
    with pytest.raises(UsageError, match=r"data\.links='?gold'?.* data\.extra"):
        check_config(
            make_config([extra], corpus="captions", train=None, valid=None, test={}, links="gold")
        )
    check_config(make_config([extra], links="ibm1"))
