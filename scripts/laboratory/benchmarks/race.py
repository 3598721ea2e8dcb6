"""Quality per minute: BLEU of ours, the tutorial's loop, JoeyNMT and OpenNMT-py by the CPU time of
their training.

All train on the same pairs of Multi30k, on one thread. First each system's pace is measured, in
turns, on a machine that should be quiet. The race then counts updates, and may run beside other
work: `race_clock.py` keeps checkpoints at the same minutes. Afterwards each translates the
validation set greedily, and the best one the test set with the system's own beam search; all are
scored by the same call. A race that was killed continues with the next system or checkpoint that is
missing. On another processor `--pace` measures all paces again, and moves the checkpoints of the
record to the minutes at which that processor reaches them. Systems: `peer_configs/race.yaml`.
"""

import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, NamedTuple
from unittest import mock

import yaml
from sacrebleu.metrics.bleu import BLEU

from scripts.laboratory.benchmarks import peers, race_clock
from scripts.laboratory.benchmarks.measure import build_parser, publish, toy_settings
from scripts.laboratory.harness.records import RECORDS, ROOT, Record, describe
from scripts.laboratory.harness.turns import precisions
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import read_json, write_json, write_lines
from seq2seq_attn.text.lines import read_lines
from seq2seq_attn.text.tokenizers.base import Tokenizer

RACE = yaml.safe_load((peers.CONFIGS / "race.yaml").read_text(encoding="utf-8"))
FOLDER = ROOT / "runs" / "lab" / "race"
BEAM_SIZE = 5
PACE_TURNS, PACE_SECONDS = 3, 20.0
NEVER = 1_000_000_000


class Field(NamedTuple):
    """The conditions of the race, which are the same for all systems: the folder for their runs,
    the settings of the corpus, the test set, the tokenizer of the peers' text, and the minutes at
    which checkpoints are kept."""

    folder: Path
    settings: Sequence[str]
    test_set: str
    tokenizer: Tokenizer
    minutes: Sequence[float]

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def text(self, split: str, side: str) -> Path:
        return self.data / f"raw.{split}.{side}"


class Entrant:
    """A system of `race.yaml`: its commands and its files."""

    def __init__(self, name: str, values: Mapping[str, str], field: Field) -> None:
        self.name, self.values, self.field = name, values, field
        self.trainer, self.config = values["trainer"], values["config"]
        self.folder = field.folder / name.replace(" ", "-").replace(",", "")
        self.is_peer = "package" in values
        self.python = (
            peers.ensure_environment(peers.PEERS[values["package"]])
            if self.is_peer
            else Path(sys.executable)
        )

    @property
    def checkpoints(self) -> list[tuple[float, Path]]:
        return race_clock.checkpoints(self.folder / "checkpoints")

    @property
    def paces(self) -> list[Record]:
        """The pace in each turn; none if it is not known."""
        path = self.folder / "paces.json"
        return list(read_json(path)) if path.exists() else []

    @property
    def pace(self) -> Record:
        """The median of the paces, and the processor that they were measured on."""
        median = {
            key: statistics.median(pace[key] for pace in self.paces)
            for key in ("start_s", "update_s")
        }
        return {**median, "paced_on": self.paces[-1]["paced_on"]}

    def measure_pace(self, seconds: float) -> None:
        """Train for some CPU seconds, and add the pace to those known."""
        path = self.folder / "pace.json"
        self._train(pace_path=str(path), pace_seconds=seconds)
        known = [pace for pace in self.paces if pace["paced_on"] == processor()]
        write_json(
            self.folder / "paces.json", [*known, {**read_json(path), "paced_on": processor()}]
        )

    def train(self, minutes: Sequence[float]) -> None:
        """Train from the last checkpoint on, unless the last is kept."""
        if not (self.folder / "checkpoints" / race_clock.FINISHED).exists():
            self._train(pace=self.pace, minutes=list(minutes))

    def _train(self, **more: Any) -> None:
        folder = self.folder / "checkpoints"
        folder.mkdir(parents=True, exist_ok=True)
        settings = [*self.field.settings, *self.values.get("settings", ())]
        task: Record = {
            "trainer": self.trainer,
            "config": self.config,
            "settings": settings,
            "folder": str(folder),
        }
        if self.trainer == "ours":  # validated afterwards; states are saved by the clock
            never = {
                "train.validation.every_updates": NEVER,
                "train.checkpoint_every_updates": NEVER,
            }
            cheap = {
                "train.validation.num_pairs": 1,
                "train.validation.metric": "perplexity",
                "train.num_threads": 1,
            }
            named = dict(setting.split("=", 1) for setting in settings)
            task |= {"run_dir": str(self.folder / "run"), "settings": {**named, **never, **cheap}}
        if self.is_peer:
            last = [str(path / "model") for _, path in self.checkpoints[-1:] if "pace" in more]
            task["config"] = str(self.write_config("train.yaml", start=last[0] if last else "null"))
        write_json(self.folder / "task.json", {**task, **more})
        self.run("-m", "scripts.laboratory.benchmarks.race_clock", str(self.folder / "task.json"))
        shutil.rmtree(self.folder / "run", ignore_errors=True)
        shutil.rmtree(self.folder / "model", ignore_errors=True)

    def write_config(
        self, name: str, *, start: str = "null", checkpoint: str = "null", beam_size: int = 1
    ) -> Path:
        """A peer's configuration, filled in."""
        template = Template((peers.CONFIGS / self.config).read_text(encoding="utf-8"))
        values = {"start": start, "checkpoint": checkpoint, "beam_size": beam_size}
        write_lines(
            self.folder / name,
            [template.substitute(values, data=str(self.field.data), folder=str(self.folder))],
        )
        return self.folder / name

    def run(
        self, *arguments: str, source: Path | None = None, output: Path | None = None
    ) -> peers.Usage:
        return peers.run_logged([str(self.python), *arguments], source, output)[1]

    def translate(
        self, checkpoint: Path, split: str, beam_size: int
    ) -> tuple[list[str], peers.Usage]:
        """The lines of a set as text, and what the command took. The peers translate tokens."""
        raw, output, beam = (
            self.field.text(split, "de"),
            checkpoint / f"{split}.txt",
            str(beam_size),
        )
        tokens, model = self.field.data / f"{split}.de", str(checkpoint / "model")
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
            usage = self.run("-m", module, str(checkpoint), str(raw), str(output))
        else:
            files = ["--run", str(checkpoint), "-i", str(raw), "-o", str(output)]
            usage = self.run(
                "-m", "seq2seq_attn", "translate", *files, "--beam-size", beam, "--device", "cpu"
            )
        lines = read_lines(output)
        return [
            self.field.tokenizer.detokenize(line.split()) for line in lines
        ] if self.is_peer else lines, usage

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
            cased, lower = BLEU(), BLEU(lowercase=True)
            scores = {
                "bleu": cased.corpus_score(lines, [references]).score,
                "signature": str(cased.get_signature()),
            }
            scores["bleu_lower_case"] = lower.corpus_score(lines, [references]).score
            speed = {
                "num_sentences": len(lines),
                "sentences_per_s": len(lines) / usage.cpu_s,
                "timed_on": processor(),
            }
            write_json(path, {**scores, **speed, **usage._asdict()})
        return dict(read_json(path))

    def result(self) -> Record:
        """Train, translate, score. The row of the record."""
        self.train(self.field.minutes)
        paths = [path for _, path in self.checkpoints]
        scores = [self.score(path, "valid", 1) for path in paths]
        beam_size = 1 if self.trainer == "tutorial" else BEAM_SIZE
        best = max(range(len(paths)), key=lambda i: scores[i]["bleu"])
        test = {"beam_size": beam_size, **self.score(paths[best], "test", beam_size)}
        forced = [
            text.partition("=")[2]
            for text in self.values.get("settings", ())
            if "precision" in text
        ]
        precision = (forced or precisions("cpu")[-1:])[0] if self.trainer == "ours" else "fp32"
        points = [
            {
                "updates": int(path.name),
                "bleu": score["bleu"],
                "bleu_lower_case": score["bleu_lower_case"],
            }
            for path, score in zip(paths, scores, strict=True)
        ]
        about = {"name": self.name, "recipe": self.values["recipe"], "precision": precision}
        return at_pace({**about, "points": points, "test": test}, self.pace)


def at_pace(row: Record, pace: Record) -> Record:
    """A row of the record with a pace, and with its checkpoints at the minutes at which that pace
    reaches them."""
    points = [
        {**point, "minutes": round(race_clock.minutes_after(point["updates"], pace), 2)}
        for point in row["points"]
    ]
    best = max(points, key=lambda point: float(point["bleu"]))
    return {
        **row,
        **pace,
        "points": points,
        "test": {**row["test"], "best_minutes": best["minutes"]},
    }


def processor() -> str:
    return str(describe("lab")["cpu"])


def main(arguments: Sequence[str]) -> None:
    """Race one system after the other; write the record after each."""
    parser = build_parser("race", __doc__)
    parser.add_argument(
        "--only", metavar="NAME;...", help="systems, separated by semicolons; default: all"
    )
    parser.add_argument(
        "--minutes", metavar="N,...", help="times of the checkpoints; default: 2 to 60"
    )
    parser.add_argument(
        "--pace", action="store_true", help="only measure the pace of each system, once more"
    )
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where runs are kept; default: runs/lab/race"
    )
    options = parser.parse_args(arguments)
    systems: dict[str, Mapping[str, str]] = RACE["systems"]
    names = options.only.split(";") if options.only else list(systems)
    if unknown := [name for name in names if name not in systems]:
        raise UsageError(f"--only {';'.join(unknown)}: expected some of {'; '.join(systems)}")
    path = (
        options.folder / "race.json" if options.quick else options.record or RECORDS / "race.json"
    )
    with mock.patch.dict(os.environ, peers.ONE_CORE):
        minutes = (
            [float(mark) for mark in options.minutes.split(",")]
            if options.minutes
            else RACE["minutes"]
        )
        field = prepare(options.folder.resolve(), minutes, is_toy=options.quick)
        entrants = [Entrant(name, systems[name], field) for name in names]
        turns, seconds = (1, 1.0) if options.quick else (PACE_TURNS, PACE_SECONDS)
        unknown_pace = [entrant for entrant in entrants if options.pace or not entrant.paces]
        for entrant in unknown_pace * turns:
            entrant.measure_pace(seconds)
        if options.pace:
            rows = {row["name"]: row for row in known_rows(path) if "points" in row}
            for entrant in entrants:
                if entrant.name in rows:
                    record(at_pace(rows[entrant.name], entrant.pace), path, field)
            return
        for entrant in entrants:
            try:
                row = entrant.result()
            except (UserError, subprocess.CalledProcessError) as error:
                print(f"{entrant.name}: {error}", file=sys.stderr)
                row = {
                    "name": entrant.name,
                    "recipe": entrant.values["recipe"],
                    "error": str(error).splitlines()[-1],
                }
            record(row, path, field)


def record(row: Record, path: Path, field: Field) -> None:
    """Write a row into the record, which two races may share."""
    names: list[str] = list(RACE["systems"])
    rows = {one["name"]: one for one in known_rows(path)} | {row["name"]: row}
    ordered, missing = (
        [rows[name] for name in names if name in rows],
        [name for name in names if name not in rows],
    )
    about = {"minutes": list(field.minutes), "test_set": field.test_set}
    publish({**about, "systems": ordered, "missing": missing}, path)


def known_rows(path: Path) -> list[Record]:
    return list(read_json(path)["systems"]) if path.exists() else []


def prepare(folder: Path, minutes: Sequence[float], *, is_toy: bool) -> Field:
    """Prepare both corpora, which no clock counts, and write the peers' tokens and the raw text,
    once."""
    settings = toy_settings(folder / "toy") if is_toy else []
    test_set = "valid" if is_toy else peers.TEST_SET
    data = [setting for setting in settings if setting.startswith("data.")]
    prepared = prepare_corpus(load_config(["multi30k"], data))
    prepare_corpus(load_config(["tutorial"], data))
    field = Field(folder, settings, test_set, prepared.target_tokenizer, minutes)
    if not (field.data / "complete").exists():
        field.data.mkdir(parents=True, exist_ok=True)
        peers.write_data(
            field.data, load_config(["multi30k"], data), None, test_set, num_valid=None
        )
        for split, name in (("valid", "valid"), ("test", test_set)):
            for side, lines in zip(("de", "en"), prepared.text(name), strict=True):
                write_lines(field.text(split, side), lines)
        (field.data / "complete").touch()
    return field
