"""Keep the translation of each training source that is closest to the reference (Kim and Rush 2016,
section 3.3).

    scripts/lab closest TRANSLATIONS SOURCES REFERENCES PREFIX

TRANSLATIONS is what `seq2seq translate --n-best N` wrote for SOURCES. The pairs are written as
PREFIX.de and PREFIX.en; those that repeat an original pair or are blank are left out. Closeness is
sentence chrF.
"""

import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from sacrebleu import sentence_chrf

from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import write_lines
from seq2seq_attn.text.lines import read_lines


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 4:
        raise UsageError("scripts/lab closest: expected TRANSLATIONS SOURCES REFERENCES PREFIX")
    translations, *texts = (read_lines(Path(name)) for name in arguments[:3])
    pairs = closest(translations, *texts)
    for language, lines in zip(("de", "en"), zip(*pairs, strict=True), strict=True):
        write_lines(Path(f"{arguments[3]}.{language}"), lines)
    print(f"{len(pairs):,} pairs for {len(texts[0]):,} sources", file=sys.stderr)


def closest(
    translations: Iterable[str], sources: Sequence[str], references: Sequence[str]
) -> list[tuple[str, str]]:
    """The new pairs. A translation is a line `number ||| text ||| log P ||| score`, numbered from
    0."""
    known = set(zip(sources, references, strict=True))
    pairs = []
    for number, lines in groupby(translations, key=lambda line: line.split(" ||| ")[0]):
        index = int(number)
        texts = [line.split(" ||| ")[1] for line in lines]
        best = max(texts, key=lambda text: sentence_chrf(text, [references[index]]).score)
        pair = (sources[index], best)
        if best.strip() and pair not in known:
            pairs.append(pair)
    return pairs
