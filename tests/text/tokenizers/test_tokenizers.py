"""The contract of all tokenizers, then each of them."""

import json
import re
import time
import unicodedata
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seq2seq_attn.config import DataConfig
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.tokenizers import spacy as spacy_tokenizer
from seq2seq_attn.text.tokenizers.base import CharacterTokenizer, Tokenizer
from seq2seq_attn.text.tokenizers.factory import build_tokenizers, load_source, load_tokenizer
from seq2seq_attn.text.tokenizers.sentencepiece import SentencePieceTokenizer, train_sentencepiece
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer

GERMAN = [
    "Ein Mann fährt Rad.",
    "Eine Frau läuft über die Straße.",
    "Zwei Hunde spielen im Schnee.",
    "",
] * 5
ENGLISH = [
    "A man rides a bike.",
    "A woman isn't crossing the street.",
    "Two dogs play in the snow.",
    "",
] * 5
KINDS = ["spacy", "sentencepiece", "characters", "spaces"]
HOSTILE = [
    "",
    " \t ",
    "\x00",
    "a\x00b\x1b[31m",
    "zwei\u2028Zeilen\u2029und\u0085mehr\x0b\x0c",
    "a\rb\nc",
    "\u202eabc\u202c \u200f",
    "👩‍👩‍👧 😀🇩🇪",
    "\ufeffBOM und \u00adSoft­hyphen",
    "\ud800 einsam \udfff",
    "<pad> <bos> <eos> <unk> ⁇ ▁ ␣",
    "ﬁ ½ Ⅻ e\u0301 日本語 العربية",
    "'''\"\"\"((([[[---...",
    "wort " * 10_000,
    "x" * 50_000,
]
LINE_ENDS = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def build(english=ENGLISH, **settings):
    """Tokenizers of German and another text, with few subwords."""
    data = DataConfig(tokenizer={"vocab_size": 80, **settings})
    return build_tokenizers(GERMAN, english, data)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    _, target = build(name=request.param)
    assert target.name == request.param
    return target


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_anything_may_come_in(tokenizer, text):
    tokens = tokenizer.tokenize(text)
    assert all(tokens)
    line = tokenizer.detokenize(tokens)
    assert not LINE_ENDS.search(line)
    line.encode("utf-8")


def test_blank_lines_have_no_tokens_and_spaces_are_shown(tokenizer):
    assert CharacterTokenizer().tokenize("Ä  b") == ["Ä", "▁", "b"]
    assert tokenizer.tokenize_many(["", "  ", "\t\u2028", "\x00"]) == [[], [], [], []]
    assert tokenizer.detokenize([]) == ""


@pytest.mark.parametrize("unit", ["(", "😀", "\u0323\u0301", "([{?", "_", "$", "\u0344"])
@pytest.mark.parametrize("start", ["", "Wort"])
def test_no_line_takes_time_in_the_square_of_its_length(tokenizer, start, unit):
    line = start + unit * (100_000 // len(unit))
    began_at = time.process_time()
    tokens = tokenizer.tokenize(line)
    assert time.process_time() - began_at < 2
    assert "".join(tokens).replace("▁", "").replace(" ", "") == normalize(line)


def test_sentencepiece_learns_beside_a_giant_word():
    tokenizer = train_sentencepiece([*GERMAN, "(" * 100_000, "()[]" * 25_000], vocab_size=60)
    assert tokenizer.detokenize(tokenizer.tokenize(GERMAN[0])) == GERMAN[0]


@pytest.mark.parametrize("base", ["e", "\u1f82", "=", ""])
@pytest.mark.parametrize("marks", ["\u0301", "\u0323\u0301", "\u0344", "\u0f73\u0301"])
def test_marks_in_a_row_are_capped_and_few_are_kept(base, marks):
    few = base + marks * 3
    assert normalize(few) == unicodedata.normalize("NFC", few)
    many = normalize(base + marks * 100 + " x")
    num_marks = [unicodedata.combining(c) > 0 for c in unicodedata.normalize("NFD", many)].count(
        True
    )
    assert num_marks == 30
    assert many.endswith(" x")
    assert normalize(many) == many


def test_many_is_one_by_one(tokenizer):
    texts = [*HOSTILE, *GERMAN, *ENGLISH]  # enough of them to share work
    assert tokenizer.tokenize_many(texts) == [tokenizer.tokenize(text) for text in texts]


def test_detokenize_is_the_inverse(tokenizer):
    for line in [
        *ENGLISH,
        "He said: \"I can't (yet), Ms. O'Hara's T-shirt is 50% off!\"",
        "Ünïcödé 日本 α/β",
    ]:
        assert tokenizer.detokenize(tokenizer.tokenize(line)) == line


@settings(deadline=None)
@given(text=st.text(st.sampled_from("abc äß.,-'\"()0\u00a0\u2028▁é\u0301")))
def test_detokenized_text_is_one_line(tokenizer, text):
    assert not LINE_ENDS.search(tokenizer.detokenize([*tokenizer.tokenize(text), "a\u2028b\nc\r"]))


@pytest.mark.parametrize("line", ["▁", "a ▁ b", "▁a▁b▁ c▁"])
def test_the_mark_of_spaces_is_kept_in_text(tokenizer, line):
    kept = tokenizer.detokenize(tokenizer.tokenize(line))
    assert kept.count("▁") == line.count("▁")
    assert tokenizer.detokenize(tokenizer.tokenize_many([line])[0]) == kept


def test_it_comes_back_from_its_files(tokenizer, tmp_path):
    tokenizer.save(tmp_path, "target")
    loaded = load_tokenizer(tmp_path, "target")
    assert loaded.name == tokenizer.name
    assert loaded.tokenize_many(HOSTILE + ENGLISH) == tokenizer.tokenize_many(HOSTILE + ENGLISH)


@pytest.mark.parametrize("name", KINDS)
def test_lower_case_is_part_of_the_tokenizer(name, tmp_path):
    source, _ = build(name=name, lowercase=True)
    source.save(tmp_path, "source")
    for tokenizer in (source, load_tokenizer(tmp_path, "source")):
        assert isinstance(tokenizer, Tokenizer)
        assert (
            tokenizer.detokenize(tokenizer.tokenize("Eine FRAU läuft ÜBER"))
            == "eine frau läuft über"
        )


def test_normalize():
    assert normalize(" a\u00a0b\tc\x00d  e\u0301 \u200fx\u2028y ") == "a b c d é x y"
    assert normalize("ÄB\u0130", lowercase=True) == "äbi̇"
    assert normalize("ទឹក\u200bនៅ\u200b\u200bឯណា?") == "ទឹក នៅ ឯណា?"
    assert normalize("\ud800") == "\ufffd"
    assert normalize("👩‍👧") == "👩‍👧"  # the joiner inside an emoji stays


COLUMNS = ([{"name": "moses"}], [], "x", None)


@pytest.mark.parametrize(
    "content",
    [
        '{"name": "moses", "lowercase": false}',
        "{}",
        '"spacy"',
        "{",
        "[" * 100_000,
        *(
            json.dumps({"name": "several", "languages": ["de"], "columns": columns})
            for columns in COLUMNS
        ),
    ],
)
def test_damaged_tokenizer_file(tmp_path, content):
    (tmp_path / "source.tokenizer.json").write_text(content)
    with pytest.raises(UserError, match=r"source\.tokenizer\.json: "):
        load_source(tmp_path)


def test_damaged_sentencepiece_model(tmp_path):
    (tmp_path / "target.tokenizer.json").write_text('{"name": "sentencepiece", "lowercase": false}')
    model = train_sentencepiece(ENGLISH, vocab_size=80).model
    for content in (None, b"", b"\x00garbage" * 9, model[: len(model) // 2]):
        if content is not None:
            (tmp_path / "target.sentencepiece.model").write_bytes(content)
        with pytest.raises(UserError, match=r"target\.sentencepiece\.model: "):
            load_tokenizer(tmp_path, "target")


def test_spacy_refuses_a_language_it_does_not_have():
    with pytest.raises(UsageError, match=r"language 'qq'.*data.tokenizer.name=sentencepiece"):
        SpacyTokenizer("qq")


def test_spacy_keeps_nothing_of_what_it_saw(monkeypatch):
    monkeypatch.setattr(spacy_tokenizer, "_MAX_CHARACTERS", 1_000)
    tokenizer = SpacyTokenizer("en")
    tokenizer.tokenize("warm up. It's")
    strings = len(tokenizer._nlp.vocab.strings)
    for i in range(50):
        assert tokenizer.tokenize_many([f"w{i}x{j}. It's" for j in range(50)])[3] == [
            f"w{i}x3",
            ".",
            "It",
            "'s",
        ]
        assert sum(map(len, tokenizer._known)) <= 1_000
    assert len(tokenizer._nlp.vocab.strings) == strings
    assert (
        SpacyTokenizer("zh").tokenize_many(["日本 x."] * 40) == [["日", "本", "x", "."]] * 40
    )  # another kind


def test_spacy_by_spans_is_spacy_by_lines():
    # special cases found across a blank, hidden by a special case's own tokens on the left, on the
    # right: all are here
    tokenizer = SpacyTokenizer("en")
    for tokens in (["=)-"], ["))="], ["=)", "x"], ["-", "=)"]):
        tokenizer._nlp.tokenizer.add_special_case(
            "".join(tokens), [{"ORTH": token} for token in tokens]
        )
    spans = ["".join(marks) for size in (1, 2, 3) for marks in product("x)=-", repeat=size)]
    lines = [f"{left} {right}" for left in spans for right in spans] + [
        "-)x) )=)=",
        "=)=) )=x",
        "x=)) =)x",
    ]
    pairs = zip(lines, tokenizer.tokenize_many(lines), strict=True)
    assert [line for line, tokens in pairs if tokens != tokenizer.tokenize(line)] == []


def test_sentencepiece_joint_or_per_side():
    source, target = build(joint=True)
    assert source is target
    sides = build(joint=False)
    for tokenizer, lines in zip(sides, (GERMAN, ENGLISH), strict=True):
        assert isinstance(tokenizer, SentencePieceTokenizer)
        assert tokenizer.model == train_sentencepiece(lines, vocab_size=80).model


def test_sentencepiece_never_says_unknown_and_rewrites_no_character():
    tokenizer = train_sentencepiece(ENGLISH, vocab_size=80)
    assert tokenizer.detokenize(tokenizer.tokenize("½ cup… ﬁve² ＡＢ ™")) == "½ cup… ﬁve² ＡＢ ™"
    assert "日本" in tokenizer.tokenize("A 日本 man")
    assert tokenizer.detokenize(["▁A", "<unk>", "<pad>", "▁man"]) == "A<unk><pad> man"


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_sentencepiece_of_a_small_text(model_type):
    # more subwords asked for than the text has
    tokenizer = train_sentencepiece(["ab ab abc"], vocab_size=8_000, model_type=model_type)
    assert tokenizer.detokenize(tokenizer.tokenize("ab abc")) == "ab abc"


def test_sentencepiece_vocabulary_smaller_than_the_alphabet():
    with pytest.raises(UsageError, match=r"data\.tokenizer\.vocab_size=5"):
        train_sentencepiece(ENGLISH, vocab_size=5)


def test_the_target_may_have_a_tokenizer_of_its_own(tmp_path):
    for name in ("characters", "spacy", "sentencepiece"):
        source, target = build(["M AE1 N", "R"], name=name, target="spaces", vocab_size=40)
        assert (source.name, target.name) == (name, "spaces")
    assert target.tokenize(" M AE1  N ") == ["M", "AE1", "N"]
    assert target.detokenize(["M", "AE1", "N"]) == "M AE1 N"
    target.save(tmp_path, "target")
    assert load_tokenizer(tmp_path, "target").tokenize("AE1 N") == ["AE1", "N"]


@pytest.mark.parametrize("num_lines", [1, 40])
def test_the_unknown_word_is_one_token_of_spacy(num_lines):
    """A translation that holds it is scored, forced and begun with the tokens that the model
    wrote."""
    tokens = "The <unk> and the <unk> .".split()
    tokenizer = SpacyTokenizer("en")
    line = tokenizer.detokenize(tokens)
    assert line == "The <unk> and the <unk>."
    assert tokenizer.tokenize(line) == tokens
    assert tokenizer.tokenize_many([line] * num_lines) == [tokens] * num_lines


def test_characters_of_a_korean_syllable_are_its_letters():
    tokenizer = CharacterTokenizer()
    tokens = tokenizer.tokenize("값 a")
    assert tokens == ["\u1100", "\u1161", "\u11b9", "▁", "a"]
    assert tokenizer.detokenize(tokens) == "값 a"


@pytest.mark.parametrize("code", ["tr", "tur_Latn", "az"])
def test_turkish_letters_have_their_own_lower_case(code):
    for capitals in ("ISPARTA İSTANBUL ILIK", "ISPARTA I\u0307STANBUL ILIK"):
        tokens = SpacyTokenizer(code, lowercase=True).tokenize(capitals)
        assert " ".join(tokens) == "ısparta istanbul ılık"
        assert SpacyTokenizer(code, lowercase=True).tokenize_many([capitals] * 40)[-1] == tokens
    assert SpacyTokenizer("de", lowercase=True).tokenize("ICH BIN") == ["ich", "bin"]


@pytest.mark.parametrize("name", ["sentencepiece", "characters", "spaces"])
def test_turkish_lower_case_needs_the_tokenizer_that_has_it(name):
    languages = {"source_language": "tr", "target_language": "en"}
    data = {**languages, "tokenizer": {"name": name, "lowercase": True, "vocab_size": 60}}
    with pytest.raises(UsageError, match=r"data\.tokenizer\.lowercase"):
        build_tokenizers(["ILIK"], ["warm"], DataConfig(**data))
