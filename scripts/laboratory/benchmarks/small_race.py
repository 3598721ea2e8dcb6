"""Small texts: ours with the settings that `train --train` chooses, against JoeyNMT's RNN and
Transformer at equal CPU minutes of one core.

    scripts/lab bench small-race --texts FOLDER [NAME ...]

All train on the same tokens, on one thread. Each keeps its model at some minutes, and translates
the test set greedily. Ours trains to its end, and the peers for `LONGER` times as long; they
keep their model at the end of ours too. The peers' recipes are those of `peer_configs/race.yaml`.
FOLDER is that of `scripts/lab own_texts`.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from scripts.laboratory.benchmarks import peers, race, race_clock
from scripts.laboratory.harness.records import RECORDS, ROOT, Record, describe
from scripts.laboratory.own_texts import describe_text
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.files import read_json, write_json, write_lines
from seq2seq_attn.text.lines import read_lines

RECORD = RECORDS / "small-race.json"
FOLDER = ROOT / "runs" / "lab" / "small-race"
MINUTES = (1.0, 2.0, 4.0, 8.0)
LONGER = 1.5
TEXTS = ("captions-2000", "commands", "dates", "fre", "kor")
PEERS = ("JoeyNMT, RNN", "JoeyNMT, Transformer")
BEAM_SIZE = 1
EXTRA_TOKENS = 5
"""A translation by JoeyNMT has at most so many tokens more than the longest reference. Without
this limit, an untrained model takes minutes."""
ENDLESS = 1_000_000.0


class Peer(race.Entrant):
    """A peer that trains on a small text."""

    def __init__(self, name: str, field: race.Field) -> None:
        super().__init__(name, field)
        self.folder = field.data.parent / self.folder.name
        references = read_lines(field.data / "test.en")
        longest = max(len(line.split()) for line in references)
        self.max_length = longest + EXTRA_TOKENS

    def train_until(self, minutes: Sequence[float]) -> list[Path]:
        """Train, unless the last checkpoint is kept. Return the folders of the checkpoints."""
        checkpoints = self.folder / "checkpoints"
        if not (checkpoints / race_clock.FINISHED).exists():
            shutil.rmtree(checkpoints, ignore_errors=True)
            self._train(minutes=minutes)
        return race_clock.checkpoints(checkpoints)


class Ours(Peer):
    """`seq2seq train` with the settings that it chooses for the text."""

    def __init__(self, folder: Path, text: Record) -> None:
        self.name = "ours"
        self.recipe = "the settings that `train --train` chooses"
        self.trainer = "ours"
        self.is_peer = False
        self.text = text
        self.folder = folder / "ours"
        self.python = Path(sys.executable)

    def _train(self, **clock: Any) -> None:
        folder = self.folder / "checkpoints"
        folder.mkdir(parents=True, exist_ok=True)
        run_dir = self.folder / "run"
        task = {"trainer": "own text", "folder": str(folder), "run_dir": str(run_dir), **clock}
        write_json(self.folder / "task.json", {**task, "text": self.text})
        self.run("-m", "scripts.laboratory.benchmarks.race_clock", str(self.folder / "task.json"))


def main(arguments: Sequence[str]) -> None:
    """Race on one text after the other; write the record after each."""
    parser = argparse.ArgumentParser(prog="scripts/lab bench small-race")
    parser.add_argument("--texts", type=Path, default=ROOT / "data")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(arguments)
    for name in options.names or TEXTS:
        with mock.patch.dict(os.environ, peers.ONE_CORE):
            about, command = describe_text(name, options.texts)
            row = {"about": about, "systems": measure(FOLDER / name, text_of(command))}
        rows = read_json(RECORD)["rows"] if RECORD.exists() else {}
        environment = describe("lab bench small-race")
        rows[name] = row | {"commit": environment["git"]["commit"]}
        write_json(RECORD, {"environment": environment, "minutes": MINUTES, "rows": rows})


def text_of(command: Sequence[str]) -> Record:
    """Return the arguments of `train_model` that options of `seq2seq train` mean."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-c", dest="config")
    for option in ("train", "valid", "test"):
        parser.add_argument(f"--{option}", dest=f"{option}_text")
    parser.add_argument("--source-language")
    parser.add_argument("--target-language")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    values = vars(parser.parse_args(command))
    pairs = [setting.split("=", 1) for setting in values["settings"]]
    settings = {key: yaml.safe_load(value) for key, value in pairs}
    values["settings"] = settings | {"train.num_threads": 1}
    return {key: value for key, value in values.items() if value is not None}


def measure(folder: Path, text: Record) -> list[Record]:
    """Train all systems on a text, and score their checkpoints."""
    ours = Ours(folder, text)
    checkpoints = ours.train_until([*MINUTES, ENDLESS])
    config = load_config([str(checkpoints[-1] / "config.yaml")])
    ours.field = write_text(folder / "data", config)
    rows = [score(ours, checkpoints)]
    end = minutes_of(checkpoints[-1])
    earlier = [minutes for minutes in MINUTES if minutes < end]
    for name in PEERS:
        peer = Peer(name, ours.field)
        rows.append(score(peer, peer.train_until([*earlier, end, LONGER * end])))
    return rows


def minutes_of(checkpoint: Path) -> float:
    """Return the CPU minutes of training until a checkpoint."""
    return float(read_json(checkpoint / race_clock.MINUTES)["minutes"])


def write_text(folder: Path, config: Config) -> race.Field:
    """Write the tokens of a prepared text for the peers, and its test set as text."""
    prepared = prepare_corpus(config)
    folder.mkdir(parents=True, exist_ok=True)
    field = race.Field(folder, {}, prepared.target_tokenizer)
    peers.write_data(folder, config, None, "test", num_valid=None)
    sources, references = prepared.text("test")
    write_lines(field.text("test", "de"), sources)
    write_lines(field.text("test", "en"), references)
    return field


def score(system: race.Entrant, checkpoints: Sequence[Path]) -> Record:
    """Translate the test set with each checkpoint, and score the translations."""
    references = read_lines(system.field.text("test", "en"))
    points = []
    for path in checkpoints:
        lines, _ = system.translate(path, "test", BEAM_SIZE)
        equal = sum(line == reference for line, reference in zip(lines, references, strict=True))
        points.append(
            {
                "minutes": minutes_of(path),
                "updates": int(path.name),
                "bleu": BLEU().corpus_score(lines, [references]).score,
                "chrf": CHRF().corpus_score(lines, [references]).score,
                "exact": 100 * equal / len(lines),
            }
        )
    return {"name": system.name, "recipe": system.recipe, "points": points}
