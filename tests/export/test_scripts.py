"""The scripts of the page without a browser: the linter's opinion, and functions under node."""

import json
from pathlib import Path

import pytest

from seq2seq_attn.export.page import REPORT_WEB, SCRIPTS, WEB
from seq2seq_attn.text.sentences import split_sentences
from tests.export.test_pass_words import ABOUT
from tests.processes import output_of
from tests.report.test_web import lint, node
from tests.translate.test_unknown import PAIRS, WORDS, translate

SENTENCES = Path(__file__).parents[1] / "text" / "sentences.tsv"


def call(expression):
    """The value of an expression in the scope of the scripts that need no page."""
    names = (
        "tokens.js",
        "detokenize.js",
        "sentences.js",
        "unknown.js",
        "lines.js",
        "search.js",
        REPORT_WEB / "compare.js",
    )
    code = "\n".join(Path(WEB, name).read_text("utf-8") for name in names)
    script = f"{code}\nconsole.log(JSON.stringify({expression}));"
    return json.loads(output_of([node(), "-e", script]))


def test_the_linter_finds_nothing(tmp_path):
    code = "\n".join(Path(WEB, name).read_text("utf-8") for name in SCRIPTS)
    script = tmp_path / "page.js"
    script.write_text(f"'use strict';\n(() => {{\n{code}}})();\n", "utf-8")
    result = lint(script)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("tokens", "expected", "excess", "missing"),
    [
        ("a dog runs", "a dog runs", [], {}),
        ("dog chases rabbit", "rabbit chases dog", [0, 1], {3: ["chases", "dog"]}),
        ("a dog", "a big dog", [], {1: ["big"]}),
        ("a big big dog", "a big dog", [2], {}),
        ("a cat runs", "a dog runs", [1], {2: ["dog"]}),
        ("", "a", [], {0: ["a"]}),
        ("a", "", [0], {}),
    ],
)
def test_tokens_are_compared_in_order(tokens, expected, excess, missing):
    [tokens, expected] = [tokens.split(), expected.split()]
    found = call(f"compareInOrder({json.dumps(tokens)}, {json.dumps(expected)})")
    assert found["excess"] == excess
    shown = {}
    for one in found["missing"]:
        shown.setdefault(one["before"], []).append(expected[one["position"]])
    assert shown == missing


def test_lines_are_split_into_sentences_as_the_package_does():
    lines = [
        row.split("\t")[1].replace("|", "") for row in SENTENCES.read_text("utf-8").splitlines()
    ]
    assert call(f"{json.dumps(lines)}.map(splitSentences)") == list(map(split_sentences, lines))


@pytest.mark.parametrize(
    ("weights", "left"),
    [([0.5, 0.25, 0.25], [0, 0.5, 0.5]), ([1, 0, 0], [0, 0.5, 0.5])],
)
def test_attention_that_a_blocked_position_had_goes_to_the_others(weights, left):
    assert call(f"withoutBlocked({weights}, [0])") == left


DICTIONARY = """
(({ about, pairs, lines, numbers, misplaced, ending }) => {
  const split = (text) => text.split(' ').filter(Boolean);
  const isNumber = (token) => numbers && ['drei', 'vier'].includes(token);
  const written = (token) => (isNumber(token) ? numbers : pairs[token] ?? '<unk>');
  const translateSentence = (text) => {
    const source = split(text);
    const tokens = source.map(written);
    if (tokens.includes(misplaced)) tokens.reverse();
    const weights = tokens.map((_, t) => [...source, ''].map((_, s) => Number(s === t)));
    const ended = tokens.map((token) => (['Paul', 'man'].includes(token) ? token + ending : token));
    const logProb = -text.includes('Mann');
    return { source, tokens: ended, text: ended.join(' '), logProb, weights };
  };
  const run = { ...about, search: { unk: 'pass' }, lines: {} };
  const isKnown = (token) => token in pairs;
  const detokenize = (tokens) => tokens.join(' ');
  const model = { run, isKnown, tokenizeSource: split, detokenize, translateSentence };
  return lines.map((line) => lineTranslator(model).translate(line).text);
})
"""
WITH_UNKNOWN = [
    "Das Rad kostet drei Euro .",
    "Das Rad kostet 4711 Euro .",
    "Kowalski sieht ( Xu-7 ) .",
    "Kowalski sieht Rad",
    "Kowalski sieht 4711",
    "Das 47 kostet 47 Euro .",
    "Das Rad sieht man Kowalski .",
    "DAS RAD kostet Euro .",
    "Kowalski 12345",
    "9",
    "",
]


@pytest.mark.parametrize(
    ("numbers", "misplaced", "ending"),
    [("", "", ""), ("15", "", ""), ("", "Paul", ""), ("", "", "'s"), ("15", "man", "'s")],
)
def test_unknown_words_pass_as_in_the_package(numbers, misplaced, ending):
    """The model is a dictionary, which may write other words than the stand-ins, or elsewhere."""
    model = {"numbers": numbers, "misplaced": misplaced, "ending": ending}
    values = {"about": ABOUT, "pairs": PAIRS, "lines": WITH_UNKNOWN, **model}
    shown = call(f"{DICTIONARY}({json.dumps(values)})")
    model["numbers_become"] = model.pop("numbers")
    for line, translation in zip(shown, translate(WITH_UNKNOWN, **model), strict=True):
        assert line.replace(" ", "") == translation.text.replace(" ", "")


def test_a_stand_in_that_the_line_has_in_capitals_is_not_taken():
    about = ABOUT | {"words": ABOUT["words"] | {"numbers": WORDS.numbers[:1]}}
    values = {"about": about, "pairs": PAIRS, "lines": ["DREI kostet 4711"], "ending": ""}
    assert call(f"{DICTIONARY}({json.dumps(values)})") == ["three costs 4711"]


def test_each_line_is_a_sentence():
    model = "{ run: { lines: {}, search: {} }, tokenizeSource: (text) => [text] }"
    assert call(f"lineTranslator({model}).sentencesOf('a\\nb')") == ["a", "b"]


def test_a_sentence_that_the_package_would_cut_is_told():
    split = "text => text.split(' ')"
    sentence = "text => ({ source: text.split(' '), tokens: [], unknown: [] })"
    run = "{ max_length: 2, lines: {}, search: {} }"
    model = f"{{ run: {run}, tokenizeSource: {split}, translateSentence: {sentence} }}"
    part = f"text => lineTranslator({model}).translatePart(text, {{ standIns: new Map() }})"
    assert call(f"['a b', 'a b c'].map({part}).map(part => part.isLong)") == [False, True]
