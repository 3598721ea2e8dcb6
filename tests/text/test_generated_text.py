"""Generated files of pairs, over formats, encodings, compressions and damage: read rightly, or
refused in one line whose advice works."""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import subprocess
from html import escape
from random import Random

import pytest

from seq2seq_attn.errors import UserError
from tests.text.conftest import read

WORDS = {
    "de": "Der Hund ist im Haus. Was hast du damit gemacht? Das war nicht für ihn".split(),
    "en": "The dog is in the house. What have you done to it? This was not for him".split(),
}
DECOMPRESS = {
    gzip.compress: gzip.decompress,
    lzma.compress: lzma.decompress,
    bz2.compress: bz2.decompress,
    bytes: bytes,
}


def make_pairs(random):
    """Sentences of the languages' own words, some quoted, with separators, with umlauts, or
    blank."""
    forms = random.choice(
        [["{}"], ["{}", 'He: "{}"'], ["{}", "{}; so"], ["{}", "{}, “{}” – 5 €"], ["{}", ""]]
    )
    pairs = []
    for _ in range(random.choice([1, 2, 3, 12, 300])):
        sides = [
            " ".join(random.choices(WORDS[language], k=random.randint(4, 9)))
            for language in ("de", "en")
        ]
        source, target = (random.choice(forms).replace("{}", side) for side in sides)
        pairs.append((source, target))
    return [pairs[0] if all(pairs[0]) else ("Das ist es.", "This is it."), *pairs[1:]]


def as_csv(rows, random):
    stream = io.StringIO()
    quoting = random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    csv.writer(stream, delimiter=random.choice(",;|\t"), quoting=quoting).writerows(rows)
    return stream.getvalue()


def as_tmx(pairs, random):
    region = random.choice(["", "-AT"])
    units = (
        f'<tu><tuv xml:lang="en"><seg>{escape(target)}</seg></tuv>\n'
        f'<tuv xml:lang="de{region}"><seg>{escape(source)}</seg></tuv></tu>'
        for source, target in pairs
    )
    return f'<?xml version="1.0"?>\n<tmx version="1.4"><header/><body>{"".join(units)}</body></tmx>'


def table(pairs, random):
    """A table of a random form, and its columns where it does not name them."""
    objects = []
    numbered = []
    for number, (source, target) in enumerate(pairs):
        objects.append({"id": number, "en": target, "de": source or None})
        numbered.append((str(number), source, target, f"CC-BY 2.0 example.org #{number}"))
    form = random.choice("tsv columns csv header lines list nested sides tmx".split())
    if form == "tsv":
        return "".join(f"{source}\t{target}\n" for source, target in pairs), "1,2"
    if form == "columns":
        return "".join("\t".join(row) + "\n" for row in numbered), "2,3"
    if form == "csv":
        return as_csv([*pairs], random), "1,2"
    if form == "header":
        return as_csv([("nr", "text_de", "text_en", "by"), *numbered], random), ""
    if form == "tmx":
        return as_tmx(pairs, random), ""
    if form == "list":
        indent = random.choice([None, 1, "\t"])
        return json.dumps(objects, indent=indent, ensure_ascii=False), ""
    if form == "sides":
        objects = [
            {"source": pair["de"], "target": pair["en"], "source_lang": "de"} for pair in objects
        ]
    lines = [{"translation": pair} if form == "nested" else pair for pair in objects]
    is_ascii = random.random() < 0.5
    return "\n".join(json.dumps(line, ensure_ascii=is_ascii) for line in lines), ""


def read_text(spec, columns):
    """The pairs, or the error."""
    try:
        pairs = read(spec, "de", "en", columns)
    except UserError as error:
        return str(error)
    return [(" ".join(source.split()), " ".join(target.split())) for source, target in pairs]


@pytest.mark.parametrize(
    "seeds",
    [range(40), pytest.param(range(40, 1_000), marks=pytest.mark.slow)],
    ids=["few", "many"],
)
def test_generated_files(tmp_path, seeds):
    for seed in seeds:
        random = Random(seed)
        pairs = make_pairs(random)
        encoding = random.choice("utf-8 utf-8 utf-8-sig utf-16 cp1252 utf-16-le".split())
        compress = random.choice([*DECOMPRESS])
        damage = random.choice(["", "", "", "cut", ""])
        columns = ""
        if random.random() < 0.2:
            texts = {
                f"{seed}.{side}": "".join(f"{pair[i]}\n" for pair in pairs)
                for i, side in enumerate(("de", "en"))
            }
        else:
            text, columns = table(pairs, random)
            texts = {f"{seed}": text}
        for name, text in texts.items():
            data = compress(text.encode(encoding))
            is_cut = damage == "cut" and compress is not bytes
            (tmp_path / name).write_bytes(data[: len(data) * 2 // 3] if is_cut else data)
        spec = str(tmp_path / f"{seed}")
        found = read_text(spec, columns)
        if isinstance(found, str) and (is_cut or "iconv" in found):
            assert "\n" not in found, seed
            if is_cut:
                continue
            command = re.search(r"iconv( -\w( [\w-]+)?)+", found)
            assert command is not None, (seed, found)
            for name in texts:
                data = DECOMPRESS[compress]((tmp_path / name).read_bytes())
                is_named = not data.isascii() or b"\0" in data
                converted = subprocess.run(
                    command[0].split(), input=data, capture_output=True, check=True
                ).stdout
                (tmp_path / name).write_bytes(converted if is_named else data)
            found = read_text(spec, columns)
        assert found == pairs, seed
