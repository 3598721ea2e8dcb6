"""The page's tokenizers split and join lines as the package's do."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from seq2seq_attn.export.tokens import describe_tokenizer
from seq2seq_attn.text.captions import find_captions
from seq2seq_attn.text.corpus import read_lines
from seq2seq_attn.text.tokenizers.base import CharacterTokenizer, SpaceTokenizer
from seq2seq_attn.text.tokenizers.sentencepiece import train_sentencepiece
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer
from tests.report.test_web import node

WEB = Path(__file__).parents[2] / "seq2seq_attn" / "export" / "web"
HARD = [
    "https://example.org/a?b=1 ist (sehr) gut!? \"Hallo\", sagt er: 'Na?'",
    "z.B. U.S.A., don't can't I'm he'd've 10km 20-30% :-) ;) $5 3.000,50 €",
    "l\u2019arbre d'abord aujourd'hui est-il peut-\u00eatre \u4e2d\u6587 na\u00efve e\u0301",
    "\u0420\u0443\u0441\u0441\u043a\u0438\u0439",
    "\u200b  soft\u00adhyphen\ttab   <unk> \u2581 \U0001f600\U0001f601",
    "",
]
DRIVER = """
const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const one = tokenizer(given.settings);
const tokens = given.lines.map((line) => one.tokenize(line));
console.log(JSON.stringify({ tokens, lines: given.tokens.map((line) => one.detokenize(line)) }));
"""


def lines(language: str) -> list[str]:
    files = find_captions(None, "de", "en")["test"]
    return [*read_lines(files.target if language == "en" else files.source)[:300], *HARD]


def tokenizers() -> dict[str, Any]:
    german = lines("de")[:300]
    return {
        **{f"spacy {language}": lambda language=language: SpacyTokenizer(language) for language in ("de", "en")},
        "spacy fr": lambda: SpacyTokenizer("fr", lowercase=True),
        "unigram": lambda: train_sentencepiece(german, vocab_size=300),
        "bpe": lambda: train_sentencepiece(german, vocab_size=300, model_type="bpe", lowercase=True),
        "characters": CharacterTokenizer,
        "spaces": SpaceTokenizer,
    }


@pytest.mark.parametrize("name", tokenizers())
def test_lines_are_split_and_joined_as_the_package_does(name: str, tmp_path: Path) -> None:
    tokenizer = tokenizers()[name]()
    text = lines(name[-2:])
    tokens = [tokenizer.tokenize(line) for line in text]
    script = tmp_path / "tokens.js"
    script.write_text(
        "".join((WEB / file).read_text("utf-8") for file in ("detokenize.js", "tokens.js")) + DRIVER, "utf-8"
    )
    given = json.dumps({"settings": describe_tokenizer(tokenizer), "lines": text, "tokens": tokens})
    done = subprocess.run([node(), str(script)], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    shown = json.loads(done.stdout)
    assert [pair for pair in zip(text, shown["tokens"], tokens, strict=True) if pair[1] != pair[2]] == []
    assert shown["lines"] == [tokenizer.detokenize(line) for line in tokens]
