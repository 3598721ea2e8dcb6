"""Lines per second from text to a prepared corpus, and memory, beside the bare tokenizers.

A line is one side of a pair. Seconds leave out what comes first: training SentencePiece, or loading spaCy. Per core:
lines per second of processor time, of all processes together. Memory is resident, of all processes together
(proportional set size).
"""

# Worker processes import this file again: heavy packages are imported where they are used.
from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from scripts.benchmarks.pages import publish
from scripts.laboratory.harness.processes import peak_mib
from scripts.laboratory.harness.records import ROOT, Record, describe, exit_code
from seq2seq_attn.errors import UserError

SIDES = ("de", "en")
TOKENIZERS = ("sentencepiece", "spacy")
NUM_YARDSTICK_LINES = 20_000
SAMPLE_EVERY_S = 0.5


def main() -> None:
    """Make the corpora, prepare each in every way in a process of its own, print, record."""
    options = parse()
    if options.measure:
        json.dump(measure(**json.loads(options.measure)), sys.stdout)
        return
    with tempfile.TemporaryDirectory(prefix="bench-prepare-", dir=options.folder) as folder:
        origin, lines = real_lines(Path(folder))
        yardsticks = {name: yardstick(name, lines) for name in options.tokenizers}
        rows = []
        for num_pairs in options.pairs:
            prefixes = {name: write_corpus(Path(folder), lines, *size) for name, size in sizes(num_pairs).items()}
            for tokenizer in options.tokenizers:
                rows += compare(Path(folder), prefixes, num_pairs, tokenizer, options.processes)
    if not all(row["is_same"] for row in rows):
        raise UserError("another number of processes made another folder")
    value = {"origin": origin, "bare_lines_per_s": yardsticks}
    publish("prepare", {**value, "rows": rows, "environment": describe("bench_prepare")}, save=options.record)


def real_lines(folder: Path) -> tuple[str, list[tuple[str, ...]]]:
    """Where the lines are from, and (source, target) pairs."""
    from seq2seq_attn.text.captions import find_captions
    from seq2seq_attn.text.corpus import read_pairs

    published = os.environ.get("SEQ2SEQ_MULTI30K_DIR")
    if published and Path(published).is_dir():
        paths = (Path(published) / f"train.{side}.gz" for side in SIDES)
        return "Multi30k", list(zip(*read_pairs(*paths), strict=True))
    train = find_captions(None, *SIDES)["train"]
    return "captions", list(zip(*read_pairs(train.source, train.target), strict=True))


def sizes(num_pairs: int) -> dict[str, tuple[str, int]]:
    """Of each split: its name, which seeds it, and its number of pairs."""
    return {"train": (f"train-{num_pairs}", num_pairs), "valid": ("valid", 1_000)}


def write_corpus(folder: Path, lines: Sequence[tuple[str, ...]], name: str, num_pairs: int) -> str:
    """A prefix of two files: the lines over and over. In each pair, and on both sides, two words change places and one
    comes from another line; in one of twenty there is a new number."""
    generator = random.Random(name)

    def varied(line: str) -> str:
        words = line.split(" ")
        i = generator.randrange(len(words))
        words[i], words[-1 - i] = words[-1 - i], words[i]
        words[generator.randrange(len(words))] = generator.choice(generator.choice(lines)[side].split(" "))
        if generator.random() < 0.05:
            words.append(str(generator.randrange(1_000_000)))
        return " ".join(words)

    for side, language in enumerate(SIDES):
        with (folder / f"{name}.{language}").open("w", encoding="utf-8") as stream:
            for i in range(num_pairs):
                stream.write(varied(lines[i % len(lines)][side]) + "\n")
    return str(folder / name)


def yardstick(name: str, lines: Sequence[tuple[str, ...]]) -> float:
    """Lines per processor second of the bare tokenizer, on both sides: the best of three."""
    from seq2seq_attn.text.tokenizers.sentencepiece import train_sentencepiece

    sides = [[pair[side] for pair in lines[: NUM_YARDSTICK_LINES // 2]] for side in (0, 1)]
    if name == "spacy":
        import spacy

        tokenizers: list[Any] = [spacy.blank(language).tokenizer for language in SIDES]

        def tokenize() -> None:
            for tokenizer, of_side in zip(tokenizers, sides, strict=True):
                for document in tokenizer.pipe(of_side):
                    [token.text for token in document]

    else:
        from sentencepiece import SentencePieceProcessor

        processor = SentencePieceProcessor(model_proto=train_sentencepiece([*sides[0], *sides[1]]).model)

        def tokenize() -> None:
            for of_side in sides:
                processor.encode(of_side, out_type=str, num_threads=1)

    seconds = []
    for _ in range(3):
        began_at = time.process_time()
        tokenize()
        seconds.append(time.process_time() - began_at)
    return sum(map(len, sides)) / min(seconds)


def compare(
    folder: Path, prefixes: Mapping[str, str], num_pairs: int, tokenizer: str, processes: Sequence[int]
) -> list[Record]:
    """A row for each number of processes."""
    rows: list[Record] = []
    for num_processes in processes:
        with tempfile.TemporaryDirectory(dir=folder) as data_dir:
            task = {"prefixes": prefixes, "data_dir": data_dir, "tokenizer": tokenizer, "num_processes": num_processes}
            row = {"pairs": num_pairs, "tokenizer": tokenizer, "processes": num_processes, **watch(task)}
        row["is_same"] = not rows or row["content"] == rows[0]["content"]
        rows.append(row)
        print(f"{num_pairs:,} pairs, {tokenizer}, {num_processes}: {row['seconds']:.0f} s", file=sys.stderr)
    return rows


def watch(task: Record) -> Record:
    """`measure` in a process of its own, with the largest memory of its tree."""
    command = [sys.executable, "-m", "scripts.benchmarks.prepare", "--measure", json.dumps(task)]
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    peak = peak_mib(child, SAMPLE_EVERY_S)
    output, _ = child.communicate()
    if child.returncode:
        raise UserError(f"{task}: exit {child.returncode}")
    return {**json.loads(output), "peak_mib": peak}


def measure(prefixes: Mapping[str, str], data_dir: str, tokenizer: str, num_processes: int) -> Record:
    """Prepare a corpus here."""
    from seq2seq_attn.config import config_from_dict
    from seq2seq_attn.data import prepare
    from seq2seq_attn.text.tokenizers.factory import build_tokenizers

    before: dict[str, float] = {}

    def timed_build(*arguments: Any, **options: Any) -> Any:
        began_at, began_at_cpu = time.perf_counter(), time.process_time()
        built = build_tokenizers(*arguments, **options)
        before.update(seconds=time.perf_counter() - began_at, cpu_s=time.process_time() - began_at_cpu)
        return built

    data = {"corpus": "files", **prefixes, "data_dir": data_dir, "num_processes": num_processes}
    config = config_from_dict({"data": {**data, "tokenizer": {"name": tokenizer}}})
    began_at, began_at_cpu = time.perf_counter(), time.process_time()
    with mock.patch.object(prepare, "build_tokenizers", timed_build):
        prepared = prepare.prepare_corpus(config)
    seconds, cpu_s = (time.perf_counter() - began_at, time.process_time() - began_at_cpu)
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    num_lines = 2 * sum(found["pairs_read"] for found in prepared.audit.values())
    seconds -= before["seconds"]
    cpu_s += workers.ru_utime + workers.ru_stime - before["cpu_s"]
    return {
        "seconds": seconds,
        "tokenizer_seconds": before["seconds"],
        "lines_per_s": num_lines / seconds,
        "lines_per_s_per_core": num_lines / cpu_s,
        "content": content(prepared.directory),
    }


def content(directory: Path) -> str:
    """A digest of a folder's files."""
    digest = hashlib.sha256()
    for path in sorted(directory.iterdir()):
        digest.update(path.name.encode())
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:12]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_prepare", description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--tokenizers", nargs="+", choices=TOKENIZERS, default=TOKENIZERS)
    parser.add_argument("--folder", type=Path, help="for the corpora and what is made of them; removed afterwards")
    parser.add_argument("--record", action="store_true", help="write docs/speed/prepare.json")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(exit_code(main))
