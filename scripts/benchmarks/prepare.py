"""See scripts/bench_prepare. A line is one side of a pair. Seconds leave out what comes first: training SentencePiece,
or loading spaCy. Per core: lines a second of processor time, of all processes together. Memory is resident, of all
processes together (proportional set size)."""

# Worker processes import this file again: what is heavy is imported where it is used.
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
from pathlib import Path

SIDES = ("de", "en")
NUM_YARDSTICK_LINES = 20_000
SAMPLE_EVERY_S = 0.05


def main():
    """Make the corpora, prepare each in every way in a process of its own, print, record."""
    options = parse(sys.argv[1:])
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
    report(origin, yardsticks, rows, options)


def real_lines(folder):
    """Where the lines are from, and (source, target) pairs."""
    from seq2seq_attn.captions.generator import write_corpus as write_captions
    from seq2seq_attn.text.corpus import read_pairs

    published = os.environ.get("SEQ2SEQ_MULTI30K_DIR")
    if published and Path(published).is_dir():
        paths = (Path(published) / f"train.{side}.gz" for side in SIDES)
        return "Multi30k", list(zip(*read_pairs(*paths), strict=True))
    write_captions(folder, num_train=20_000, num_valid=10, num_test=10, min_length=4, max_length=30, seed=1)
    return "captions", list(zip(*read_pairs(*(folder / f"train.{side}" for side in SIDES)), strict=True))


def sizes(num_pairs):
    """Of each split: its name's seed and its pairs."""
    return {"train": (f"train-{num_pairs}", num_pairs), "valid": ("valid", 1_000)}


def write_corpus(folder, lines, name, num_pairs):
    """A prefix of two files: the lines over and over. In each pair, and on both sides, two words change places and one
    comes from another line; in one of twenty there is a new number."""
    generator = random.Random(name)

    def varied(line):
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


def yardstick(name, lines):
    """Lines per processor second of the bare tokeniser, on both sides: the best of three."""
    from seq2seq_attn.text.tokenizers.sentencepiece import train_sentencepiece

    sides = [[pair[side] for pair in lines[: NUM_YARDSTICK_LINES // 2]] for side in (0, 1)]
    if name == "spacy":
        import spacy

        pipelines = [spacy.blank(language) for language in SIDES]

        def tokenize():
            for pipeline, of_side in zip(pipelines, sides, strict=True):
                for document in pipeline.tokenizer.pipe(of_side):
                    [token.text for token in document]

    else:
        from sentencepiece import SentencePieceProcessor

        processor = SentencePieceProcessor(model_proto=train_sentencepiece([*sides[0], *sides[1]]).model)

        def tokenize():
            for of_side in sides:
                processor.encode(of_side, out_type=str, num_threads=1)

    seconds = []
    for _ in range(3):
        began_at = time.process_time()
        tokenize()
        seconds.append(time.process_time() - began_at)
    return sum(map(len, sides)) / min(seconds)


def compare(folder, prefixes, num_pairs, tokenizer, processes):
    """A row for each number of processes."""
    rows = []
    for num_processes in processes:
        with tempfile.TemporaryDirectory(dir=folder) as data_dir:
            task = {"prefixes": prefixes, "data_dir": data_dir, "tokenizer": tokenizer, "num_processes": num_processes}
            row = {"pairs": num_pairs, "tokenizer": tokenizer, "processes": num_processes, **watch(task)}
        row["is_same"] = not rows or row["content"] == rows[0]["content"]
        rows.append(row)
        print(f"{num_pairs:,} pairs, {tokenizer}, {num_processes}: {row['seconds']:.0f} s", file=sys.stderr)
    return rows


def watch(task):
    """`measure` in a process of its own, with the largest memory of its tree."""
    command = [sys.executable, __file__, "--measure", json.dumps(task)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    peak_bytes = 0
    while child.poll() is None:
        peak_bytes = max(peak_bytes, resident_bytes(child.pid))
        time.sleep(SAMPLE_EVERY_S)
    output, _ = child.communicate()
    if child.returncode:
        raise SystemExit(f"{task}: exit {child.returncode}")
    return {**json.loads(output), "peak_mib": peak_bytes / 2**20}


def resident_bytes(pid):
    """Of a process and all that it started; what several share, a process just forked its parent's all, counts once."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        children = [
            int(child)
            for thread in Path(f"/proc/{pid}/task").iterdir()
            for child in (thread / "children").read_text().split()
        ]
    except OSError:  # it has just ended
        return 0
    kib = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return 1024 * kib + sum(map(resident_bytes, children))


def measure(prefixes, data_dir, tokenizer, num_processes):
    """Prepare a corpus here."""
    from seq2seq_attn.config import config_from_dict
    from seq2seq_attn.data import prepare

    before = {}
    build = prepare.build_tokenizers

    def timed_build(*arguments, **options):
        began_at, began_at_cpu = time.perf_counter(), time.process_time()
        built = build(*arguments, **options)
        before.update(seconds=time.perf_counter() - began_at, cpu_s=time.process_time() - began_at_cpu)
        return built

    prepare.build_tokenizers = timed_build
    data = {"corpus": "files", **prefixes, "data_dir": data_dir, "num_processes": num_processes}
    config = config_from_dict({"data": {**data, "tokenizer": {"name": tokenizer}}})
    began_at, began_at_cpu = time.perf_counter(), time.process_time()
    prepared = prepare.prepare_corpus(config)
    seconds, cpu_s = (time.perf_counter() - began_at, time.process_time() - began_at_cpu)
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    num_lines = 2 * sum(found["pairs_read"] for found in prepared.audit.values())
    seconds -= before["seconds"]
    cpu_s += workers.ru_utime + workers.ru_stime - before["cpu_s"]
    return {
        "seconds": seconds,
        "tokenizer_seconds": before["seconds"],
        "cpu_seconds": cpu_s,
        "lines_per_s": num_lines / seconds,
        "lines_per_s_per_core": num_lines / cpu_s,
        "largest_process_mib": max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, workers.ru_maxrss) / 1024,
        "types": [prepared.audit["train"][side]["types"] for side in ("source", "target")],
        "content": content(prepared.directory),
    }


def content(directory):
    """A digest of a folder's files."""
    digest = hashlib.sha256()
    for path in sorted(directory.iterdir()):
        digest.update(path.name.encode())
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:12]


def report(origin, yardsticks, rows, options):
    """The table, and the record."""
    from seq2seq_attn.runtime.environment import describe_environment

    environment = describe_environment([Path(sys.argv[0]).name, *sys.argv[1:]], "cpu")
    packages = ", ".join(f"{name} {environment['packages'][name]}" for name in ("numpy", "sentencepiece", "spacy"))
    cpus = len(os.sched_getaffinity(0))
    print(f"{environment['cpu']}, {cpus} CPU(s) of use, {packages}, {environment['written_at']}")
    print(f"lines of {origin}, varied; bare tokenisers, lines a second of one core:")
    for name, speed in yardsticks.items():
        print(f"  {name}: {speed:,.0f}")
    columns = ("pairs", "tokeniser", "processes", "before s", "s", "lines/s", "lines/s/core", "peak MiB", "largest MiB")
    print("\n" + " ".join(f"{column:>13}" for column in columns))
    for row in rows:
        values = [f"{row['pairs']:,}", row["tokenizer"], row["processes"]]
        values += [f"{row[key]:.1f}" for key in ("tokenizer_seconds", "seconds")]
        values += [
            f"{row[key]:,.0f}" for key in ("lines_per_s", "lines_per_s_per_core", "peak_mib", "largest_process_mib")
        ]
        print(" ".join(f"{value:>13}" for value in values) + ("" if row["is_same"] else "  ANOTHER FOLDER"))
    print(f"\nthe same folder from any number of processes: {all(row['is_same'] for row in rows)}")
    if options.record:
        value = {"origin": origin, "num_usable_cpus": cpus, "bare_lines_per_s": yardsticks, "rows": rows}
        path = Path("docs/speed/prepare.json")
        path.write_text(json.dumps({**value, "environment": environment}, indent=1) + "\n", encoding="utf-8")


def parse(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_prepare", description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--tokenizers", nargs="+", default=["sentencepiece", "spacy"])
    parser.add_argument("--folder", type=Path, help="for the corpora and what is made of them; removed afterwards")
    parser.add_argument("--record", action="store_true", help="write docs/speed/prepare.json")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
