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


def toy_settings(folder: Path) -> list[str]:
    """Write a corpus of eight words and return the settings that read it, with a model of 16 units
    per layer."""
    generator = random.Random(1)
    words = {
        "de": "Hund Katze Mann Frau Kind Ball Haus Baum",
        "en": "dog cat man woman child ball house tree",
    }
    folder.mkdir(parents=True, exist_ok=True)
    for split, num_pairs in (("train", 64), ("valid", 8)):
        pairs = [
            [generator.randrange(8) for _ in range(generator.randint(1, 4))]
            for _ in range(num_pairs)
        ]
        for language, text in words.items():
            write_lines(
                folder / f"{split}.{language}",
                (" ".join(text.split()[i] for i in pair) for pair in pairs),
            )
    return [
        *("data.corpus=files", f"data.data_dir={folder}", "data.tokenizer.name=spaces"),
        *(f"data.{split}={folder / split}" for split in ("train", "valid")),
        *(f"model.{name}=16" for name in ("embedding_size", "hidden_size", "encoder.hidden_size")),
        *("model.tie_embeddings=none", "train.batch.size=16"),
    ]
