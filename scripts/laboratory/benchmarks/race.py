"""Quality per minute: BLEU of ours, the tutorial's loop, JoeyNMT and OpenNMT-py by the CPU time of
their training.

All train on the same pairs of Multi30k, on one thread. First each system's pace is measured, in
turns, on a machine that should be quiet. The race then counts updates, and may run beside other
work: `race_clock.py` keeps checkpoints at the same minutes. Afterwards each translates the
validation set greedily, and the best one the test set with the system's own beam search; all are
scored by the same call. A race that was killed continues with the system that it was at. Systems:
`peer_configs/race.yaml`.
"""

import os
import shutil
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple
from unittest import mock

import yaml
from sacrebleu.metrics.bleu import BLEU

from scripts.laboratory.benchmarks import peers, race_clock
from scripts.laboratory.benchmarks.measure import CPU, build_parser, publish, toy_settings
from scripts.laboratory.harness.records import RECORDS, ROOT, Record, describe
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import read_json, write_json, write_lines
from seq2seq_attn.runtime.device import training_precision
from seq2seq_attn.text.lines import read_lines
from seq2seq_attn.text.tokenizers.base import Tokenizer

RACE = yaml.safe_load((peers.CONFIGS / "race.yaml").read_text(encoding="utf-8"))
FOLDER = ROOT / "runs" / "lab" / "race"
BEAM_SIZE = 5
PACE_TURNS, PACE_SECONDS = 3, 20.0
NEVER = 1_000_000_000
UNVALIDATED = {
    "train.validation.every_updates": NEVER,
    "train.checkpoint_every_updates": NEVER,
    "train.validation.num_pairs": 1,
    "train.validation.metric": "perplexity",
    "train.num_threads": 1,
}
"""settings of ours: the clock saves states, which are validated afterwards"""


class Field(NamedTuple):
    """The conditions of the race, which are the same for all systems: the folder of their text,
    the settings of the corpus, and the tokenizer of the peers' text."""

    data: Path
    settings: Record
    tokenizer: Tokenizer

    def text(self, split: str, side: str) -> Path:
        return self.data / f"raw.{split}.{side}"


class Entrant:
    """A system of `race.yaml`: its commands and its files."""

    max_length = 100
    """maximum number of tokens in a translation by JoeyNMT"""
    seed = 1

    def __init__(self, name: str, field: Field) -> None:
        values = RACE["systems"][name]
        self.name = name
        self.recipe: str = values["recipe"]
        self.trainer: str = values["trainer"]
        self.config: str = values["config"]
        self.settings: Record = values.get("settings", {})
        self.field = field
        settings = field.settings | self.settings | UNVALIDATED
        self.text = {"config": self.config, "settings": settings}
        self.folder = FOLDER / name.replace(" ", "-").replace(",", "")
        self.pace_path = self.folder / "paces.json"
        self.is_peer = "package" in values
        self.python = Path(sys.executable)
        if self.is_peer:
            self.python = peers.ensure_environment(peers.PEERS[values["package"]])

    def paces(self) -> list[Record]:
        """The pace in each turn."""
        return list(read_json(self.pace_path)) if self.pace_path.exists() else []

    def pace(self) -> Record:
        """The median of the paces, and the processor that they were measured on."""
        paces = self.paces()
        return {
            "start_s": statistics.median(pace["start_s"] for pace in paces),
            "update_s": statistics.median(pace["update_s"] for pace in paces),
            "paced_on": paces[-1]["paced_on"],
        }

    def measure_pace(self, seconds: float) -> None:
        """Train for some CPU seconds, and add the pace to those known."""
        path = self.folder / "pace.json"
        self._train(pace_path=str(path), pace_seconds=seconds)
        pace = read_json(path) | {"paced_on": processor()}
        write_json(self.pace_path, [*self.paces(), pace])

    def train(self, **clock: Any) -> list[Path]:
        """Train, unless the last checkpoint is kept. Return the folders of the checkpoints."""
        checkpoints = self.folder / "checkpoints"
        if not (checkpoints / race_clock.FINISHED).exists():
            shutil.rmtree(checkpoints, ignore_errors=True)
            self._train(**clock)
        return race_clock.checkpoints(checkpoints)

    def _train(self, **clock: Any) -> None:
        folder = self.folder / "checkpoints"
        folder.mkdir(parents=True, exist_ok=True)
        task = {
            "trainer": self.trainer,
            "text": self.text,
            "folder": str(folder),
            "run_dir": str(self.folder / "run"),
            **clock,
        }
        if self.is_peer:
            task["config"] = str(self.write_config("train.yaml"))
        write_json(self.folder / "task.json", task)
        self.run("-m", "scripts.laboratory.benchmarks.race_clock", str(self.folder / "task.json"))
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        shutil.rmtree(self.folder / "model", ignore_errors=True)

    def write_config(self, name: str, *, checkpoint: str = "null", beam_size: int = 1) -> Path:
        """A peer's configuration, filled in."""
        template = Template((peers.CONFIGS / self.config).read_text(encoding="utf-8"))
        folders = {"data": str(self.field.data), "folder": str(self.folder)}
        search = {"beam_size": beam_size, "max_length": self.max_length}
        text = template.substitute(folders, checkpoint=checkpoint, seed=self.seed, **search)
        write_lines(self.folder / name, [text])
        return self.folder / name

    def run(
        self, *arguments: str, source: Path | None = None, output: Path | None = None
    ) -> peers.Usage:
        return peers.run_logged([str(self.python), *arguments], source, output)[1]

    def translate(
        self, checkpoint: Path, split: str, beam_size: int
    ) -> tuple[list[str], peers.Usage]:
        """The lines of a set as text, and what the command took. The peers translate tokens."""
        raw = str(self.field.text(split, "de"))
        tokens = self.field.data / f"{split}.de"
        output = checkpoint / f"{split}.txt"
        model = str(checkpoint / "model")
        beam = str(beam_size)
        if self.trainer == "joeynmt":
            (self.folder / "model").mkdir(exist_ok=True)  # for its log
            config = self.write_config("translate.yaml", checkpoint=model, beam_size=beam_size)
            usage = self.run(
                "-m", "joeynmt", "translate", str(config), source=tokens, output=output
            )
        elif self.trainer == "opennmt":
            files = ["-model", model, "-src", str(tokens), "-output", str(output)]
            batches = ["-batch_size", "64", "-batch_type", "sents", "-max_length", "100"]
            usage = self.run("-m", "onmt.bin.translate", *files, *batches, "-beam_size", beam)
        elif self.trainer == "tutorial":
            module = "scripts.laboratory.benchmarks.tutorial"
            usage = self.run("-m", module, str(checkpoint), raw, str(output))
        else:
            files = ["--run", str(checkpoint), "-i", raw, "-o", str(output)]
            usage = self.run(
                "-m", "seq2seq_attn", "translate", *files, "--beam-size", beam, "--device", "cpu"
            )
        lines = read_lines(output)
        if self.is_peer:
            lines = [self.field.tokenizer.detokenize(line.split()) for line in lines]
        return lines, usage

    def score(self, checkpoint: Path, split: str, beam_size: int) -> Record:
        """Scores of a checkpoint, and what its translation took; made once."""
        path = checkpoint / f"{split}.json"
        if not path.exists():
            lines, usage = self.translate(checkpoint, split, beam_size)
            references = read_lines(self.field.text(split, "en"))
            if len(lines) != len(references):
                raise UserError(
                    f"{self.name}: {len(lines)} translations of {len(references)} sentences"
                )
            cased = BLEU()
            scores = {
                "bleu": cased.corpus_score(lines, [references]).score,
                "signature": str(cased.get_signature()),
                "bleu_lower_case": BLEU(lowercase=True).corpus_score(lines, [references]).score,
                "num_sentences": len(lines),
                "sentences_per_s": len(lines) / usage.cpu_s,
                "timed_on": processor(),
            }
            write_json(path, {**scores, **usage._asdict()})
        return dict(read_json(path))

    def result(self) -> Record:
        """Train, translate, score. The row of the record."""
        pace = self.pace()
        points = []
        best = (-1.0, 0.0, Path())
        for path in self.train(pace=pace, minutes=RACE["minutes"]):
            score = self.score(path, "valid", 1)
            updates = int(path.name)
            minutes = round(race_clock.minutes_after(updates, pace), 2)
            point = {"updates": updates, "minutes": minutes}
            points.append(point | {key: score[key] for key in ("bleu", "bleu_lower_case")})
            if score["bleu"] > best[0]:
                best = (score["bleu"], minutes, path)
        _, best_minutes, best_path = best
        beam_size = 1 if self.trainer == "tutorial" else BEAM_SIZE
        test = self.score(best_path, "test", beam_size)
        precision = "fp32"
        if self.trainer == "ours":
            config = load_config([self.config], self.settings)
            precision = training_precision(config.train.precision, CPU)
        return {
            "name": self.name,
            "recipe": self.recipe,
            "precision": precision,
            **pace,
            "points": points,
            "test": {"beam_size": beam_size, "best_minutes": best_minutes, **test},
        }


def processor() -> str:
    return str(describe("lab")["cpu"])


def main(arguments: Sequence[str]) -> None:
    """Race one system after the other; write the record after each."""
    parser = build_parser("race", __doc__)
    parser.add_argument(
        "--only", metavar="NAME;...", help="systems, separated by semicolons; default: all"
    )
    options = parser.parse_args(arguments)
    systems = RACE["systems"]
    names = options.only.split(";") if options.only else list(systems)
    for name in names:
        if name not in systems:
            raise UsageError(f"--only {name}: expected some of {'; '.join(systems)}")
    turns, seconds, path = PACE_TURNS, PACE_SECONDS, options.record or RECORDS / "race.json"
    if options.quick:
        turns, seconds, path = 1, 1.0, FOLDER / "race.json"
    with mock.patch.dict(os.environ, peers.ONE_CORE):
        field = prepare(is_toy=options.quick)
        entrants = [Entrant(name, field) for name in names]
        for entrant in [entrant for entrant in entrants if not entrant.paces()] * turns:
            entrant.measure_pace(seconds)
        for entrant in entrants:
            record(entrant.result(), path)


def record(row: Record, path: Path) -> None:
    """Write a row into the record, which two races may share."""
    known = read_json(path)["systems"] if path.exists() else []
    rows = {system["name"]: system for system in known} | {row["name"]: row}
    ordered = [rows[name] for name in RACE["systems"] if name in rows]
    about = {"minutes": RACE["minutes"], "test_set": peers.TEST_SET}
    publish({**about, "systems": ordered}, path)


def prepare(*, is_toy: bool) -> Field:
    """Prepare both corpora, which no clock counts, and write the peers' tokens and the raw text,
    once."""
    settings = toy_settings(FOLDER / "toy") if is_toy else {}
    test_set = "valid" if is_toy else peers.TEST_SET
    config = load_config(["multi30k"], settings)
    prepared = prepare_corpus(config)
    prepare_corpus(load_config(["tutorial"], settings))
    field = Field(FOLDER / "data", settings, prepared.target_tokenizer)
    if not (field.data / "complete").exists():
        field.data.mkdir(parents=True, exist_ok=True)
        peers.write_data(field.data, config, None, test_set, num_valid=None)
        for split, name in (("valid", "valid"), ("test", test_set)):
            sources, references = prepared.text(name)
            write_lines(field.text(split, "de"), sources)
            write_lines(field.text(split, "en"), references)
        (field.data / "complete").touch()
    return field
