"""Unknown words pass through a translation by stand-ins. The model is a dictionary of words."""

from collections import Counter

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.api.translate import translate_lines
from seq2seq_attn.files import write_lines
from seq2seq_attn.text.known_words import KnownWords, StandIn, kind_of, words_in
from seq2seq_attn.text.tokenizers.base import CharacterTokenizer, SpaceTokenizer
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer
from seq2seq_attn.text.vocab import build_vocab
from seq2seq_attn.translate import segments
from seq2seq_attn.translate.translation import EOS_TOKEN, Translation
from seq2seq_attn.translate.unknown import UnknownWords
from tests.toy_run import SOURCE, TARGET, make_toy_run, toy_config

PAIRS = {
    "Das": "The",
    "Rad": "bike",
    "kostet": "costs",
    "Euro": "euros",
    "drei": "three",
    "vier": "four",
    "Paul": "Paul",
    "Mann": "man",
    "sieht": "sees",
    ".": ".",
    "9": "nine",
    "52": "24",
    "(": "(",
    ")": ")",
}
WORDS = KnownWords(
    frozenset(PAIRS),
    [StandIn("drei", "three"), StandIn("vier", "four")],
    [StandIn("Paul", "Paul"), StandIn("Mann", "man")],
    ["number", "code", "name", "numbers"],
)


@pytest.mark.parametrize(
    ("line", "text", "unknown"),
    [
        ("Das Rad kostet drei Euro.", "The bike costs three euros.", ()),
        ("Das Rad kostet 4711 Euro.", "The bike costs 4711 euros.", ("4711",)),
        ("Kowalski sieht (Xu-7).", "Kowalski sees (Xu-7).", ("Kowalski", "Xu-7")),
        ("Paul sieht x@y.example.", "Paul sees x@y.example.", ("x@y.example",)),
        ("Das 47 kostet 47 Euro.", "The 47 costs 47 euros.", ("47",)),
        ("Das Rad kostet -47 Euro.", "The bike costs -47 euros.", ("-47",)),
        ("Das Rad kostet %s Euro.", "The bike costs %s euros.", ("%s",)),
        ("{name} sieht Paul.", "{name} sees Paul.", ("{name}",)),
        ("Das Rad § kostet.", "The bike <unk> costs.", ("§",)),
        ("Das Rad, kostet.", "The bike <unk> costs.", (",",)),
        ("Das Rad, kostet 4,5 Euro.", "The bike <unk> costs 4,5 euros.", ("4,5", ",")),
        ("DAS RAD kostet Euro.", "The bike costs euros.", ()),
        ("4711", "4711", ("4711",)),
        ("Kowalski 12345!", "Kowalski 12345!", ("Kowalski", "12345")),
        ("9, 47", "9, 47", ("47",)),
        ("Das Rad kostet 9 Euro.", "The bike costs nine euros.", ()),
        ("😀 🎉", "😀 🎉", ("😀", "🎉")),
        ("...", "...", ()),
        ("", "", ()),
    ],
)
def test_unknown_words_stay_in_place(line, text, unknown):
    [translation] = translate([line])
    assert (translation.text, translation.unknown) == (text, unknown)


def test_without_its_stand_in_the_word_that_attends_to_it_gives_way():
    [translation] = translate(["Das Rad kostet 4711 Euro."], numbers_become="15")
    assert translation.text == "The bike costs 4711 euros."


def test_a_stand_in_is_not_glued_to_another_token(monkeypatch):
    monkeypatch.setitem(PAIRS, "Euro", "n't")
    [translation] = translate(["Das Rad kostet 4711 Euro."], numbers_become="15")
    assert translation.text == "The bike costs 15n't."
    assert any("4711" in warning for warning in translation.warnings)


def test_an_inflected_stand_in_is_named_by_a_warning(monkeypatch):
    monkeypatch.setitem(PAIRS, "Rad", "Pauls")
    [translation] = translate(["Kowalski sieht Rad"])
    assert any("Pauls" in warning for warning in translation.warnings)


def test_a_stand_in_that_its_target_word_does_not_attend_to_is_not_chosen():
    [translation] = translate(["Kowalski sieht Rad"], misplaced="Paul")
    assert translation.text == "Kowalski sees bike"


def test_a_word_that_is_lost_is_named_by_a_warning():
    [translation] = translate(
        ["Das Rad kostet 4711 Euro."], numbers_become="15", has_attention=False
    )
    assert "4711" not in translation.text
    assert any("4711" in warning for warning in translation.warnings)


def test_a_copied_word_that_is_written_twice_is_named_by_a_warning(monkeypatch):
    monkeypatch.setitem(PAIRS, "Rad", "three four")
    [translation] = translate(["Das Rad kostet 10:45 Euro."])
    [warning] = translation.warnings
    assert "10:45" in warning


def test_a_known_number_that_is_changed_is_named_by_a_warning():
    [translation] = translate(["Das Rad kostet 52 Euro."])
    [warning] = translation.warnings
    assert "52" in warning
    assert "24" in warning


def test_a_number_of_a_glossary_term_may_change():
    [translation] = translate(["Das Rad kostet 52 Euro."], known_words=lambda line: {"52"})
    assert not translation.warnings


@pytest.mark.parametrize(
    ("words", "source"),
    [(WORDS._replace(copied=["code", "name"]), None), (WORDS, SpaceTokenizer())],
)
def test_numbers_that_the_training_text_rewrites_may_change(words, source):
    [translation] = translate(["Das Rad kostet 52 Euro"], words=words, source=source)
    assert not translation.warnings


def load_with_words(folder):
    """A translator of a toy run that knows the words of `SOURCE`, and passes others."""
    translator = load(make_toy_run(folder, toy_config(tokenizer="spacy")).path)
    words = WORDS._replace(known=frozenset(words_in(" ".join(SOURCE))))
    vocab, tokenizer = translator.source_vocab, translator.source_tokenizer
    targets = frozenset(translator.target_vocab.tokens)
    translator._unknown = UnknownWords(words, tokenizer, vocab, tokenizer, targets)
    return translator


@pytest.mark.parametrize(("lines", "num_warnings"), [(TARGET, 1), (SOURCE, 0), (TARGET[1:], 0)])
def test_lines_in_the_target_language_have_one_warning_a_call(
    tmp_path, monkeypatch, caplog, lines, num_warnings
):
    translator = load_with_words(tmp_path / "toy")
    monkeypatch.setattr(segments, "CHUNK_LINES", len(lines))
    translator.translate([*lines, *lines])
    assert len(caplog.messages) == num_warnings
    translator.translate(lines)
    assert len(caplog.messages) == 2 * num_warnings


def test_a_file_in_the_target_language_has_one_warning(tmp_path, monkeypatch, caplog):
    translator = load_with_words(tmp_path / "toy")
    monkeypatch.setattr("seq2seq_attn.api.translate._load", lambda *options: translator)
    monkeypatch.setattr("seq2seq_attn.api.translate.line_chunks", lambda *options: [TARGET, TARGET])
    write_lines(tmp_path / "text", TARGET)
    translate_lines(input=[str(tmp_path / "text")])
    assert caplog.text.count("exchanged") == 1


def test_a_known_word_of_one_line_is_unknown_in_the_others():
    lines = ["Das Rad kostet 4711 Euro.", "Das Rad kostet 4711 Euro"]
    known, passed = translate(lines, known_words=lambda line: {"4711"} if "." in line else ())
    assert ("4711" in known.text, "4711" in passed.text) == (False, True)


@pytest.mark.parametrize(("word", "is_named"), [("RAD", True), ("rad", True), ("Rad", False)])
def test_the_spelling_in_which_a_word_is_read_is_named_by_a_warning(word, is_named):
    [translation] = translate([f"Das {word} kostet"])
    assert translation.text == "The bike costs"
    assert any(word in each and "Rad" in each for each in translation.warnings) == is_named


def test_maps_are_labeled_with_the_unknown_word():
    [translation] = translate(["Das Rad kostet 4711 Euro."])
    assert translation.source_tokens[3] == translation.tokens[3] == "4711"
    assert translation.unknown_positions == (3,)
    assert translation.links()[3] == (3, 3)
    assert not translation.warnings


def test_lines_do_not_depend_on_the_other_lines():
    lines = ["Das Rad kostet 4711 Euro.", "Paul sieht Kowalski.", "...", "Paul sieht Paul."]
    together = [translation.text for translation in translate(lines)]
    assert together == [translate([line])[0].text for line in lines]


def test_lines_do_not_depend_on_a_line_that_no_stand_in_fits():
    lines = ["Paul Mann sieht Kowalski.", "Das Rad kostet drei Euro."]
    assert translate(lines)[1].text == "The bike costs three euros."


def test_a_stand_in_within_a_token_gives_way_beside_a_lost_word():
    [translation] = translate(["Kowalski sieht 4711"], numbers_become="15", ending="'s")
    assert translation.text == "Kowalski's sees 4711"


def test_an_unknown_word_that_spells_another_stand_in_stays():
    [translation] = translate(["Das Rad sieht man Kowalski."])
    assert translation.text == "The bike sees man Kowalski."


def test_a_word_of_the_training_text_without_a_token_is_named_by_a_warning():
    words = WORDS._replace(known=WORDS.known | {"4711"})
    [translation] = translate(
        ["Das Rad kostet 4711 Euro."], words=words, numbers_become="15", has_attention=False
    )
    assert any("4711" in warning for warning in translation.warnings)


def test_a_sign_belongs_to_the_number_that_follows_it():
    assert words_in("-3 – (-4,5) 1990-1995 a-b –7°") == ["-3", "-4,5", "1990-1995", "a-b", "–7"]


def test_a_spelling_without_a_token_is_unknown():
    words = WORDS._replace(known=WORDS.known | {"Berlin"})
    unknown = UnknownWords(words, SpaceTokenizer(), VOCAB, SpaceTokenizer(), frozenset())
    assert unknown.read("BERLIN", {}).unknown == ["BERLIN"]


def test_words_end_where_sentences_end():
    unknown = UnknownWords(WORDS, SpaceTokenizer(), VOCAB, SpaceTokenizer(), frozenset())
    line = unknown.read("Das Rad kostet.Das Rad sieht.", {}, True)
    [version] = line.versions
    assert (version.sentences, line.unknown) == (["Das Rad kostet. ", "Das Rad sieht."], [])
    [version, _] = unknown.read("Paul sieht X. Rad", {}, True).versions
    assert version.sentences == ["Paul sieht Mann. Rad"]
    unchanged = unknown.read("kostbar.Haus", {}, True)
    assert (unchanged.text, unchanged.versions) == ("kostbar.Haus", [])


def test_no_word_of_a_failed_translation_stays():
    unknown = UnknownWords(WORDS, SpaceTokenizer(), VOCAB, SpaceTokenizer(), frozenset())

    def fail(texts, keep_attention):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        unknown.translate(["Paul sieht 4711"], fail, keep_attention=True, warn=print)
    assert "4711" not in repr(unknown)


def test_attention_is_kept_only_if_it_is_asked_for():
    [translation] = translate(["Paul sieht 4711."], keep_attention=False)
    assert translation.attention is None


@pytest.mark.parametrize("line", ["Das Rad kostet", "Ein Sportlerinnenrad"])
def test_characters_of_names_are_translated(line):
    vocab = build_vocab(Counter(CharacterTokenizer().tokenize("EinSportler nadkosetDRa")))
    unknown = UnknownWords(WORDS, CharacterTokenizer(), vocab, CharacterTokenizer(), frozenset())
    assert [version.sentences for version in unknown.read(line, {}).versions] == [[line]]


@pytest.mark.parametrize("number", ["drei", "Drei"])
def test_stand_ins_that_the_line_has_are_not_taken(number):
    unknown = UnknownWords(WORDS, SpaceTokenizer(), VOCAB, SpaceTokenizer(), frozenset())
    line = unknown.read(f"Paul sieht Kowalski {number} 4711", {})
    assert [version.sentences for version in line.versions] == [["Paul sieht Mann drei vier"]]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("4711", "number"),
        ("1,234.50", "number"),
        ("1’234’567", "number"),
        ("3½", "code"),
        ("AB-12/3", "code"),
        ("info@x.example", "code"),
        ("iPhone", "code"),
        ("Kowalski", "name"),
        ("Müller-Lüdenscheidt", "name"),
        ("hund", "word"),
    ],
)
def test_kind(word, kind):
    assert kind_of(word) == kind
    assert words_in(f"(„{word}“, a).") == [word, "a"]


@pytest.mark.parametrize(
    ("word", "is_copied"),
    [("Kowalski", True), ("Radfahrer", True), ("Mannheim", False), ("Ehemann", False)],
)
def test_a_name_has_no_known_part(word, is_copied):
    assert WORDS.is_copied(word) == is_copied


VOCAB = build_vocab(Counter(list(PAIRS)))


def translate(lines, *, words=WORDS, keep_attention=True, known_words=None, source=None, **options):
    """The best translations by a model that translates word by word."""
    source = source or SpacyTokenizer("de")
    target = SpacyTokenizer("en")
    unknown = UnknownWords(words, source, VOCAB, target, frozenset())

    def translate_texts(texts, keep_attention):
        return [[word_by_word("".join(text), source, target, **options)] for text in texts]

    results = unknown.translate(
        lines, translate_texts, keep_attention=keep_attention, known_words=known_words, warn=print
    )
    return [translations[0] for translations in results]


def word_by_word(
    text, source, target, *, numbers_become=None, misplaced="", ending="", has_attention=True
):
    sources = source.tokenize(text)
    tokens = [PAIRS.get(token, "<unk>") for token in sources]
    if numbers_become:
        tokens = [{"three": "15", "four": "15"}.get(token, token) for token in tokens]
    if misplaced in tokens:
        tokens.reverse()
    weights_TS = np.eye(len(tokens) + 1, dtype=np.float32)
    tokens = [token + ending if token in ("Paul", "man") else token for token in tokens]
    return Translation(
        text=target.detokenize(tokens),
        tokens=tokens,
        score=-1.0,
        log_prob=-float("Mann" in text),
        source_tokens=[*sources, EOS_TOKEN],
        attention=weights_TS if has_attention else None,
        is_finished=True,
        heaviest=list(range(len(tokens))) if has_attention else None,
        unknown_positions=tuple(i for i, token in enumerate(sources) if token not in PAIRS),
    )


def test_new_words_of_a_pronunciation_dictionary_are_known():
    words = WORDS._replace(copied=[])
    vocab = build_vocab(Counter("RAD"))
    unknown = UnknownWords(words, CharacterTokenizer(), vocab, CharacterTokenizer(), frozenset())
    assert unknown.read("DARA", {}).unknown == []
    assert unknown.read("DORN", {}).unknown == ["DORN"]
