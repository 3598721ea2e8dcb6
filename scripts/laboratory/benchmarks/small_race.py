"""Small texts: ours with the settings that `train --train` chooses, against JoeyNMT's RNN and
Transformer at equal CPU minutes of one core.

    scripts/lab bench small-race --texts FOLDER [--seeds 1,2,3] [NAME ...]

All train on the same tokens, on one thread. Each keeps its model at some minutes, and translates
the test set greedily. Ours trains to its end, and the peers for `LONGER` times as long; they
keep their model at the end of ours too. The peers' recipes are those of `peer_configs/race.yaml`.
FOLDER is that of `scripts/lab own_texts`.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from scripts.laboratory.benchmarks import peers, race, race_clock
from scripts.laboratory.harness.records import RECORDS, ROOT, Record, describe
from scripts.laboratory.own_texts import build_parser, describe_text
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

    def __init__(self, name: str, field: race.Field, seed: int) -> None:
        super().__init__(name, field)
        self.seed = seed
        self.folder = field.data.parent / self.folder.name
        references = read_lines(field.data / "test.en")
        longest = max(len(line.split()) for line in references)
        self.max_length = longest + EXTRA_TOKENS


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


def main(arguments: Sequence[str]) -> None:
    """Race on one text after the other; write the record after each."""
    parser = build_parser("scripts/lab bench small-race")
    parser.add_argument("--seeds", default="1")
    options = parser.parse_args(arguments)
    for name in options.names or TEXTS:
        for seed in options.seeds.split(","):
            with mock.patch.dict(os.environ, peers.ONE_CORE):
                about, text = describe_text(name, options.texts)
                text["settings"] |= {"train.num_threads": 1, "seed": int(seed)}
                systems = measure(FOLDER / f"{name}-s{seed}", text)
            rows = read_json(RECORD)["rows"] if RECORD.exists() else {}
            row = rows.setdefault(name, {"about": about, "by_seed": {}})
            environment = describe("lab bench small-race")
            commit = environment["git"]["commit"]
            row["by_seed"][seed] = {"commit": commit, "systems": systems}
            write_json(RECORD, {"environment": environment, "minutes": MINUTES, "rows": rows})


def measure(folder: Path, text: Record) -> list[Record]:
    """Train all systems on a text with its seed, and score their checkpoints."""
    ours = Ours(folder, text)
    checkpoints = ours.train(minutes=[*MINUTES, ENDLESS])
    config = load_config([str(checkpoints[-1] / "config.yaml")])
    ours.field = write_text(folder / "data", config)
    rows = [score(ours, checkpoints)]
    end = minutes_of(checkpoints[-1])
    earlier = [minutes for minutes in MINUTES if minutes < end]
    for name in PEERS:
        peer = Peer(name, ours.field, text["settings"]["seed"])
        checkpoints = peer.train(minutes=[*earlier, end, LONGER * end])
        rows.append(score(peer, checkpoints))
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
