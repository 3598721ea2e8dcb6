"""The page splits and joins lines as the package does: sentences, hostile lines, every language
with rules of spaCy."""

import json
import pkgutil
import random
from functools import partial
from pathlib import Path

import pytest
import spacy.lang
import yaml

from seq2seq_attn.errors import UsageError
from seq2seq_attn.export.tokens import describe_tokenizer
from seq2seq_attn.text.captions import find_captions
from seq2seq_attn.text.lines import read_lines
from seq2seq_attn.text.tokenizers.base import CharacterTokenizer, SpaceTokenizer
from seq2seq_attn.text.tokenizers.sentencepiece import train_sentencepiece
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer
from tests import ROOT
from tests.processes import output_of
from tests.report.test_web import node

WEB = ROOT / "seq2seq_attn" / "export" / "web"
LANGUAGES = Path(__file__).parents[1] / "e2e" / "languages.yaml"
HARD = [
    "https://example.org/a?b=1 ist (sehr) gut!? \"Hallo\", sagt er: 'Na?'",
    "z.B. U.S.A., don't can't I'm he'd've 10km 20-30% :-) ;) $5 3.000,50 €",
    "l\u2019arbre d'abord aujourd'hui est-il peut-\u00eatre \u4e2d\u6587 na\u00efve e\u0301",
    "\u0420\u0443\u0441\u0441\u043a\u0438\u0439",
    "\u200b  soft\u00adhyphen\ttab   <unk> \u2581 \U0001f600\U0001f601",
    f"a{40 * chr(0x301)}b \ud800 {40 * '('} {1100 * 'x'}",
    "5² % und $² oder 3² - ²3",
    'the constructor toString __proto__ "valueOf"',
    "한국어 각 값 \u1112\u1161\u11ab",
    "",
]
PARTS = [
    *"aAzZßÜéİıſ09٣Ⅷ½ .,;:!?'\"’“”„«»()[]{}<>/\\|-–—_+*=%$€#&@^~`…·°",
    *"\t\u00a0\u00ad\u200b\u200d\u2028\u202e\u0301\ufe0f",
    *"中 の ا ה น क 🙂 👩‍🚀 𝒳 \x00 <unk> ▁ n't 's z.B. www.a.de 10km :-)".split(" "),
]
DRIVER = """
const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const one = tokenizer(given.settings);
const tokens = given.lines.map((line) => one.tokenize(line));
console.log(JSON.stringify({ tokens, lines: given.tokens.map((line) => one.detokenize(line)) }));
"""


def captions(language):
    files = find_captions(None, "de", "en")["train"]
    return [*read_lines(files.target if language == "en" else files.source)]


def hostile(count):
    """Lines of random characters and what tokenizers treat specially."""
    rng = random.Random(7)
    return ["".join(rng.choices(PARTS, k=rng.randint(1, 40))) for _ in range(count)]


def tokenizers():
    german = captions("de")[:300]
    return {
        "spacy de": partial(SpacyTokenizer, "de"),
        "spacy en": partial(SpacyTokenizer, "en"),
        "spacy fr": partial(SpacyTokenizer, "fr", lowercase=True),
        "unigram": partial(train_sentencepiece, german, vocab_size=300),
        "bpe": partial(
            train_sentencepiece, german, vocab_size=300, model_type="bpe", lowercase=True
        ),
        "characters": CharacterTokenizer,
        "spaces": SpaceTokenizer,
    }


def check(tokenizer, text, folder):
    """The page's tokens and lines are those of the tokenizer."""
    tokens = [tokenizer.tokenize(line) for line in text]
    script = folder / "tokens.js"
    code = [(WEB / file).read_text("utf-8") for file in ("detokenize.js", "tokens.js")]
    script.write_text("".join([*code, DRIVER]), "utf-8")
    given = json.dumps({"settings": describe_tokenizer(tokenizer), "lines": text, "tokens": tokens})
    shown = json.loads(output_of([node(), str(script)], input=given))
    assert shown["tokens"] == tokens
    assert shown["lines"] == [tokenizer.detokenize(line) for line in tokens]


@pytest.mark.parametrize("name", tokenizers())
@pytest.mark.parametrize("count", [50, pytest.param(2_000, marks=pytest.mark.slow)])
def test_lines_are_split_and_joined_as_the_package_does(name, count, tmp_path):
    check(
        tokenizers()[name](), [*captions(name[-2:])[: 5 * count], *HARD, *hostile(count)], tmp_path
    )


@pytest.mark.slow
def test_every_language_with_rules(tmp_path):
    """The lines of all languages, so that every rule meets every script."""
    sentences = yaml.safe_load(LANGUAGES.read_text("utf-8"))
    text = [
        *HARD,
        *(line for language in sentences.values() for line in language["lines"]),
        *hostile(100),
    ]
    checked, refused = [], {}
    for module in pkgutil.iter_modules(spacy.lang.__path__):
        if not module.ispkg:
            continue
        try:
            tokenizer = SpacyTokenizer(module.name)
            describe_tokenizer(tokenizer)
        except UsageError as error:
            refused[module.name] = str(error)
            continue
        check(tokenizer, text, tmp_path)
        checked.append(module.name)
    assert len(checked) > 60
    assert all(repr(language) in message for language, message in refused.items())
