"""How text in each language of tests/e2e/languages.yaml is treated: `scripts/lab languages` writes
the record."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from scripts.laboratory.harness.records import RECORDS, ROOT, Record, describe
from seq2seq_attn.api.settings import OwnText, find_layers
from seq2seq_attn.files import write_json, write_lines
from seq2seq_attn.metrics.bleu import bleu_tokenizer
from seq2seq_attn.text.languages import separates_words
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.tokenizers.factory import build_tokenizers

RECORD = RECORDS / "languages.json"


def main(arguments: Sequence[str]) -> None:
    """Write the record."""
    languages = yaml.safe_load(
        (ROOT / "tests" / "e2e" / "languages.yaml").read_text(encoding="utf-8")
    )
    english = languages.pop("en")["lines"]
    rows = [
        {"script": row["script"], **row_of(code, english, row["lines"])}
        for code, row in languages.items()
    ]
    write_json(RECORD, {"environment": describe("lab languages"), "rows": rows})


def row_of(code: str, english: Sequence[str], lines: Sequence[str]) -> Record:
    """The tokenizer and metric settings that `train --train` chooses for translating English into
    this language."""
    with TemporaryDirectory() as folder:
        for language, text in (("en", english), (code, lines)):
            write_lines(Path(folder, f"text.{language}"), text)
        own: OwnText = {"train_text": f"{folder}/text", "source_language": "en"}
        data = find_layers(None, None, own).load().data
    tokenizer = data.tokenizer
    data = data.model_copy(update={"target_language": code})
    _, built = build_tokenizers(english, lines, data)
    back = map(built.detokenize, built.tokenize_many(lines))
    return {
        "code": code,
        "tokens": "words" if tokenizer.name == "spacy" else "subwords",
        "bleu": bleu_tokenizer(code),
        "lengths": "words" if separates_words(code) else "characters",
        "num_equal": sum(line == normalize(text) for line, text in zip(back, lines, strict=True)),
        "num_lines": len(lines),
    }
