"""Lines per second of `seq2seq prepare`, and its memory, with one process and with two.

The text is Multi30k's training set over and over, lightly varied. A line is one side of a pair.
Seconds are those of the command, the training of SentencePiece included. Per core: lines per second
of processor time, of all processes together. Memory is resident, of all processes together
(proportional set size).
"""

import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from scripts.laboratory.benchmarks.measure import build_parser, file_settings, publish, toy_settings
from scripts.laboratory.harness.records import Record, set_arguments
from scripts.laboratory.harness.runs import SEQ2SEQ
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.text.lines import read_lines

SIDES = ("de", "en")


def main(arguments: Sequence[str]) -> None:
    """Write the corpora, prepare each in every way in a process of its own, print, record."""
    options = build_parser("prepare", __doc__).parse_args(arguments)
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench-prepare-") as name:
        folder = Path(name)
        settings = toy_settings(folder / "toy") if options.quick else {}
        corpus = prepare_corpus(load_config(["multi30k"], settings))
        pairs = list(zip(*corpus.text("train"), strict=True))
        for num_pairs in [200] if options.quick else [100_000, 1_000_000]:
            for split, count in (("train", num_pairs), ("valid", 1_000)):
                write_corpus(folder / split, pairs, count)
            for tokenizer in ["spaces"] if options.quick else ["sentencepiece", "spacy"]:
                for num_processes in (1, 2):
                    about = {"pairs": num_pairs, "tokenizer": tokenizer, "processes": num_processes}
                    rows.append({**about, **measure(folder, tokenizer, num_processes)})
                    print(f"{about}: {rows[-1]['seconds']:.0f} s", file=sys.stderr)
    publish({"origin": "Multi30k", "rows": rows}, options.record)


def write_corpus(prefix: Path, pairs: Sequence[Sequence[str]], num_pairs: int) -> None:
    """The pairs over and over. In each line a word comes from another line, and to every twentieth
    a new number is added."""
    generator = random.Random(prefix.name)
    for side, language in enumerate(SIDES):
        with prefix.with_suffix(f".{language}").open("w", encoding="utf-8") as stream:
            for i in range(num_pairs):
                words = pairs[i % len(pairs)][side].split(" ")
                words[generator.randrange(len(words))] = generator.choice(
                    generator.choice(pairs)[side].split(" ")
                )
                if generator.random() < 0.05:
                    words.append(str(generator.randrange(1_000_000)))
                stream.write(" ".join(words) + "\n")


def measure(folder: Path, tokenizer: str, num_processes: int) -> Record:
    """Seconds, speeds and the largest memory of a command that prepares the corpus.

    Raises:
        UserError: it failed.
    """
    with tempfile.TemporaryDirectory(dir=folder) as data_dir:
        data = file_settings(folder) | {
            "data.data_dir": data_dir,
            "data.tokenizer.name": tokenizer,
            "data.num_processes": num_processes,
        }
        settings = set_arguments(data)
        began_at = time.perf_counter()
        used_s = cpu_seconds()
        process = subprocess.Popen(
            [*SEQ2SEQ, "prepare", "-c", "base", *settings], stdout=subprocess.DEVNULL
        )
        peak = peak_mib(process)
        seconds = time.perf_counter() - began_at
        used_s = cpu_seconds() - used_s
    if process.returncode:
        raise UserError(
            f"prepare with {tokenizer}, {num_processes} processes: exit {process.returncode}"
        )
    num_lines = sum(len(read_lines(path)) for side in SIDES for path in folder.glob(f"*.{side}"))
    speeds = {"lines_per_s": num_lines / seconds, "lines_per_s_per_core": num_lines / used_s}
    return {"seconds": seconds, **speeds, "peak_mib": peak}


def cpu_seconds() -> float:
    """Processor time of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def peak_mib(process: subprocess.Popen[bytes]) -> float:
    """Wait until a process has ended; the largest memory of its whole tree, sampled twice per
    second."""
    peak_bytes = 0
    while process.poll() is None:
        peak_bytes = max(peak_bytes, proportional_bytes(process.pid))
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
    return peak_bytes / 2**20


def proportional_bytes(pid: int) -> int:
    """Proportional set size of a process and its descendants: pages that several of them share
    count once."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:  # it has just ended
        return 0
    num_bytes = 1024 * int(re.findall(r"^Pss: +(\d+)", rollup, re.MULTILINE)[0])
    for child in " ".join(threads).split():
        num_bytes += proportional_bytes(int(child))
    return num_bytes
