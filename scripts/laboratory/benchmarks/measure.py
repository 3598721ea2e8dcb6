"""Options, printed figures and records that all benchmarks share."""

import argparse
import json
import random
from pathlib import Path

import torch
import yaml

from scripts.laboratory.harness.records import ROOT, SPEED, Record, describe
from seq2seq_attn.files import write_json, write_lines

CPU = torch.device("cpu")


def build_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """The options of all benchmarks. The record's default path is docs/speed/NAME.json."""
    path = SPEED / f"{name}.json"
    parser = argparse.ArgumentParser(prog=f"scripts/lab bench {name}", description=description)
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that it works; never a record"
    )
    help_text = f"write the record; without FILE: {path.relative_to(ROOT)}"
    group.add_argument("--record", type=Path, nargs="?", const=path, metavar="FILE", help=help_text)
    return parser


def publish(figures: Record, path: Path | None, environment: Record | None = None) -> None:
    """Print figures as YAML, and write them to a path with the environment, by default this one;
    None: only print."""
    plain = json.loads(json.dumps(figures))
    print(
        yaml.safe_dump(
            plain, sort_keys=False, allow_unicode=True, default_flow_style=None, width=240
        ),
        flush=True,
    )
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {**figures, "environment": environment or describe("lab")})


def toy_corpus(folder: Path) -> Record:
    """Write a corpus of eight words and return the settings that read it."""
    generator = random.Random(1)
    german = "Hund Katze Mann Frau Kind Ball Haus Baum".split()
    english = "dog cat man woman child ball house tree".split()
    folder.mkdir(parents=True, exist_ok=True)
    for split, num_pairs in (("train", 64), ("valid", 8)):
        sources = []
        targets = []
        for _ in range(num_pairs):
            words = generator.choices(range(8), k=generator.randint(1, 4))
            sources.append(" ".join(german[word] for word in words))
            targets.append(" ".join(english[word] for word in words))
        write_lines(folder / f"{split}.de", sources)
        write_lines(folder / f"{split}.en", targets)
    return file_settings(folder)


def file_settings(folder: Path) -> Record:
    """The settings of a corpus in the files `train` and `valid` of a folder."""
    return {
        "data.corpus": "files",
        "data.data_dir": str(folder),
        "data.tokenizer.name": "spaces",
        "data.train": str(folder / "train"),
        "data.valid": str(folder / "valid"),
    }


def toy_settings(folder: Path) -> Record:
    """The settings of `toy_corpus`, and of a model of 16 units per layer."""
    return {
        **toy_corpus(folder),
        "model.embedding_size": 16,
        "model.hidden_size": 16,
        "model.encoder.hidden_size": 16,
        "model.tie_embeddings": "none",
        "train.batch.size": 16,
    }
