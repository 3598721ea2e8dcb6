"""Measure what becomes of words that a run does not know: numbers, names, addresses and codes.

    scripts/lab unknown RUN...

In sentence pairs of each run's first test set (or its validation set), a word and its translation
give way to an invented word, on both sides. A word is kept if the translation has it, whole and as
often as the source. It is in place if the word before or after it is that of the reference, or if
it is at most one word or a tenth of the sentence away: in short sentences, a tenth is less than the
article that a translation adds or leaves out. The record is `docs/records/unknown.json`.
"""

import argparse
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sacrebleu import corpus_bleu

from scripts.laboratory.harness.records import RECORDS, Record, describe
from seq2seq_attn import load
from seq2seq_attn.data.count_words import find_pairs
from seq2seq_attn.files import write_json
from seq2seq_attn.run import Run
from seq2seq_attn.text.known_words import replace_words, words_in
from seq2seq_attn.translate.translator import Translator

NUM_SENTENCES = 500
NUM_TIMED = 100
KINDS = ("number", "name", "address", "code")
NUMBERS = frozenset("two three four five six seven eight nine ten twelve".split())
NOUNS = frozenset(
    "man woman boy girl child dog cat baker waiter waitress teacher doctor singer guest friend "
    "artist bird horse car bike truck table chair book ball house street beach boat guitar camera "
    "helmet jacket shirt hat bench tree wall building park field river mountain".split()
)
_SLACK = 0.1


class Item(NamedTuple):
    """A sentence pair with an invented word."""

    kind: str
    word: str
    source: str
    reference: str


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="scripts/lab unknown")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("-o", "--output", type=Path, default=RECORDS / "unknown.json")
    options = parser.parse_args(arguments)
    runs = [measure(path) for path in options.runs]
    write_json(options.output, {"environment": describe("scripts/lab unknown"), "runs": runs})


def measure(path: Path) -> Record:
    """The figures of a run, for words that pass and for words that the model translates."""
    run = Run.open(path)
    translator = load(path)
    split = [*run.splits[1:], *run.splits][0]
    text = run.read_set(split)
    items = make_items(text.source, text.references, seed=run.config.seed)
    record: Record = {
        "run": run.config.name,
        "seed": run.config.seed,
        "updates": run.config.train.max_updates,
        "split": split,
        "pairs": len(text.source),
    }
    for unk in ("pass", "keep"):
        hypotheses = translate(translator, [item.source for item in items], unk)
        whole = translate(translator, text.source, unk)
        record[unk] = {
            "bleu": corpus_bleu(whole, [text.references]).score,
            **judge(items, hypotheses),
        }
    found = translator.translate(text.source, keep_attention=False, unk="pass")
    clean = [line for line, best in zip(text.source, found, strict=True) if not best.unknown]
    record["lines_with_unknown_words"] = len(text.source) - len(clean)
    record["speed_of_clean_text"] = relative_speed(translator, clean[:NUM_TIMED])
    return record


def translate(translator: Translator, lines: Sequence[str], unk: str) -> list[str]:
    return [best.text for best in translator.translate(lines, keep_attention=False, unk=unk)]


def relative_speed(translator: Translator, lines: Sequence[str]) -> float:
    """Speed with the rule / without, in turns on the same lines, by processor time."""
    seconds = {"pass": 0.0, "keep": 0.0}
    for unk in ("keep", "pass", "pass", "keep", "keep", "pass", "pass", "keep"):
        began = time.process_time()
        translate(translator, lines, unk)
        seconds[unk] += time.process_time() - began
    return seconds["keep"] / seconds["pass"]


def make_items(sources: Sequence[str], references: Sequence[str], *, seed: int) -> list[Item]:
    """Sentence pairs in which an invented word stands for a number or a noun."""
    generator = random.Random(seed)
    words = [list(map(words_in, lines)) for lines in (sources, references)]
    lexicon = find_pairs(*([set(line) for line in side] for side in words))
    numbers = {(s, t) for s, t in lexicon if {s.lower(), t.lower()} & NUMBERS}
    nouns = {(s, t) for s, t in lexicon if {s.lower(), t.lower()} & NOUNS}
    items: list[Item] = []
    order = list(range(len(sources)))
    generator.shuffle(order)
    for index in order * len(KINDS):
        kind = KINDS[len(items) % len(KINDS)]
        fits = []
        for pair in sorted(numbers if kind == "number" else nouns):
            sides = zip(words, pair, strict=True)
            if all(side[index].count(word) == 1 for side, word in sides):
                fits.append(pair)
        if fits and len(items) < NUM_SENTENCES:
            source, target = generator.choice(fits)
            word = invent(kind, generator)
            items.append(
                Item(
                    kind,
                    word,
                    replace_words(sources[index], {source: word}.get),
                    replace_words(references[index], {target: word}.get),
                )
            )
    return items


def invent(kind: str, generator: random.Random) -> str:
    """A word that no training text has."""
    number = generator.randint(1_000, 9_999_999)
    match kind:
        case "number":
            return generator.choice([str(number), f"{number % 1000}.{number % 7 + 1}"])
        case "name":
            first = generator.choice("Kow Zab Wrz Tsch Mbe Okon Hav Szy Vuk Xav Brog Quis".split())
            middle = generator.choice("al ink ov esk und ar eli".split())
            return first + middle + generator.choice("ski ovic wo ez ian ault oğlu".split())
        case "address":
            host = f"qx{number % 100}.example"
            return generator.choice([f"info@{host}", f"https://{host}/a_b?c=1", f"www.{host}"])
    return generator.choice([f"XK-{number}/A", f"Q{number}_x", f"AB{number}Z"])


def judge(items: Sequence[Item], hypotheses: Sequence[str]) -> Record:
    """Shares in percent of words that are kept, in place, and replaced by another number."""
    counts = {kind: {"n": 0, "kept": 0, "in_place": 0, "other_number": 0} for kind in KINDS}
    for item, hypothesis in zip(items, hypotheses, strict=True):
        count = counts[item.kind]
        is_kept = words_in(hypothesis).count(item.word) == 1
        count["n"] += 1
        count["kept"] += is_kept
        count["in_place"] += is_kept and is_in_place(hypothesis, item)
        numbers = set(re.findall(r"\d+", hypothesis)) - set(re.findall(r"\d+", item.source))
        count["other_number"] += item.kind == "number" and bool(numbers) and not is_kept
    total = {key: sum(count[key] for count in counts.values()) for key in counts["number"]}
    return {"all": total, **counts}


def is_in_place(hypothesis: str, item: Item) -> bool:
    places = []
    neighbors = []
    for line in (hypothesis, item.reference):
        words = ["<", *words_in(line), ">"]
        position = words.index(item.word)
        places.append((position, len(words) - position, position / len(words)))
        neighbors.append((words[position - 1].lower(), words[position + 1].lower()))
    if any(ours == theirs for ours, theirs in zip(*neighbors, strict=True)):
        return True
    from_start, from_end, share = (abs(ours - theirs) for ours, theirs in zip(*places, strict=True))
    return bool(min(from_start, from_end) <= 1 or share <= _SLACK)
