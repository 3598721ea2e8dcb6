"""Training and decoding speed of JoeyNMT and OpenNMT-py against ours: same tokens, same sizes, one core.

Tokens are target tokens with EOS, without padding. A turn is some updates, the building of their batches included, or
the translation of all sentences in a given number of steps, the same for all.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from scripts.benchmarks.pages import publish
from scripts.laboratory.benchmarks.peers.environments import PEERS, ensure_environment
from scripts.harness.records import ROOT, Record, describe, exit_code, options_of, ratio_fields
from scripts.harness.turns import paired_ratio, precisions
from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_lines
from seq2seq_attn.text.vocab import Vocab

TEST_SET = "test_2016_flickr"
SIZES = {"embedding_size": 256, "batch_size": 64, "dropout": 0.3, "steps": 14}
EQUAL, LARGE = 512, 1024
MODULES = {"joeynmt": "joeynmt", "OpenNMT-py": "opennmt", "ours": "ours"}
OURS = {f"ours, {precision}": {"system": "ours", "precision": precision} for precision in precisions("cpu")}
DIFFERENCES = (
    "The three models compute different functions, so their outputs cannot be compared numerically, only their sizes.",
    "All: the same tokens (SentencePiece, joint 8k), vocabularies and sentences per batch; embeddings 256;"
    " bidirectional GRU of half the hidden size each way; decoder of one GRU; additive attention of the hidden size;"
    " readout of the hidden size, then the vocabulary; nothing tied; dropout 0.3; cross-entropy without smoothing;"
    " Adam; gradient norm clipped at 1.",
    "The peers attend with the new state and feed the attentional vector to the next step (input feeding). Ours attends"
    " with the old state, feeds the context to the same step, and its readout also sees the embedding (Bahdanau's"
    " decoder).",
    "JoeyNMT and ours learn a layer from the encoder's last states to the decoder's first; OpenNMT-py hands them over"
    " as they are. JoeyNMT's output layer has no bias; OpenNMT-py's readout is linear, the others' has a tanh.",
    "JoeyNMT does not bucket: its batches are random. OpenNMT-py sorts by source, then target length, ours by both.",
    "Dropout is where each has it: on embeddings and in the readout of all, in ours on the encoder's states too.",
    "Ours has a fused Adam and builds batches ahead in a thread, on the same core; the peers between updates.",
    "Decoding: the models are untrained, end-of-sentence is forbidden at all steps. The peers go from tokens to tokens,"
    " ours from text to text. JoeyNMT translates in the order of the lines, the others sort them by length.",
)


class Competitor:
    """A process that waits for its turns."""

    def __init__(self, name: str, python: Path, task: Record, folder: Path) -> None:
        self.name = name
        self.turns: list[Record] = []
        self._log = folder / f"{name.replace(' ', '-')}.log"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        with self._log.open("w") as log:
            module = f"scripts.laboratory.benchmarks.peers.{MODULES[task['system']]}"
            self._process = subprocess.Popen(
                [str(python), "-m", module, json.dumps(task)],
                env=environment,
                cwd=ROOT,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._commands, self._answers = self._process.stdin, self._process.stdout

    def wait_until_ready(self) -> None:
        """Wait for its first answer: its number of parameters and its versions."""
        about = self._read()
        self.parameters: int = about["parameters"]
        self.versions: dict[str, str] = about["versions"]

    def turn(self, command: Record) -> Record:
        """Its answer, with its `speed`: tokens or sentences per second."""
        self._commands.write(json.dumps(command) + "\n")
        self._commands.flush()
        answer = self._read()
        return {**command, **answer, "speed": answer["amount"] / answer["seconds"]}

    def stop(self) -> None:
        """End its input, and with it the process."""
        self._commands.close()
        if self._process.wait() and sys.exc_info()[0] is None:
            self._fail()

    def of_turns(self, key: str, beam_size: int | None = None) -> list[float]:
        """`speed` or `peak_mib` of its turns, in order."""
        return [turn[key] for turn in self.turns if turn.get("beam_size") == beam_size]

    def _read(self) -> Record:
        line = self._answers.readline()
        if not line:
            self._fail()
        answer: Record = json.loads(line)
        return answer

    def _fail(self) -> NoReturn:
        raise UserError(f"{self.name} ended early:\n{self._log.read_text(errors='replace')[-3000:]}")


class Part(NamedTuple):
    """One comparison that is over."""

    do: str
    hidden_size: int
    competitors: list[Competitor]


def main() -> None:
    """Time, compare, print, record."""
    options = parse()
    pythons = {name: ensure_environment(name, options.environments) for name in options.peers}
    pythons["ours"] = Path(sys.executable)
    parts = []
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as name:
        folder = Path(name)
        write_data(folder, options)
        for do, size in (("train", EQUAL), ("decode", EQUAL), *([] if options.quick else [("train", LARGE)])):
            entrants = entries(options.peers, large=size == LARGE)
            if len(entrants) > len(OURS):
                parts.append(compete(do, size, entrants, pythons, folder, options))
    report(parts, options)


def entries(peers: Sequence[str], *, large: bool) -> dict[str, Record]:
    """Name to the task of the process; the large size is OpenNMT-py's alone."""
    chosen = [name for name in peers if name == "OpenNMT-py" or not large]
    return {**{f"{name} {PEERS[name].version}": {"system": name} for name in chosen}, **OURS}


def write_data(folder: Path, options: argparse.Namespace) -> None:
    """The prepared corpus as sentences of tokens joined by spaces, and its vocabularies without the specials."""
    prepared = prepare_corpus(load_config(["multi30k"]))
    sides = {"source": ("de", prepared.source_vocab), "target": ("en", prepared.target_vocab)}
    for side, (language, vocab) in sides.items():
        write_lines(folder / f"{side}.vocab", vocab.tokens[4:])
        for split in ("train", "valid"):
            pairs = prepared.pairs(split)
            write_sentences(folder / f"{split}.{language}", getattr(pairs, side), vocab, len(pairs))
    for split, count in num_sentences(options).items():
        write_sentences(folder / f"{split}.de", prepared.pairs(TEST_SET).source, prepared.source_vocab, count)


def write_sentences(path: Path, ids_of: Callable[[int], Any], vocab: Vocab, count: int) -> None:
    """The first sentences of one side of a split, one per line."""
    lines = [" ".join(vocab.tokens_of(ids_of(i).tolist())) for i in range(count)]
    if any(len(line.split()) != len(ids_of(i)) for i, line in enumerate(lines)):
        raise UserError(f"{path}: a token holds a space")
    write_lines(path, lines)


def num_sentences(options: argparse.Namespace) -> dict[str, int]:
    """How many sentences are translated to warm up, and in turns that count."""
    return {"warm": min(64, options.sentences), "test": options.sentences}


def compete(
    do: str,
    size: int,
    entrants: Mapping[str, Record],
    pythons: Mapping[str, Path],
    folder: Path,
    options: argparse.Namespace,
) -> Part:
    """All load, side by side; then they take turns."""
    common = {"do": do, "data": str(folder), "cpu": options.cpu, "hidden_size": size, **SIZES}
    common = common | {"test_set": TEST_SET, "num_sentences": num_sentences(options)}
    with ExitStack() as stack:
        competitors = []
        for name, task in entrants.items():
            competitor = Competitor(name, pythons[task["system"]], {**common, **task}, folder)
            stack.callback(competitor.stop)
            competitors.append(competitor)
        for competitor in competitors:
            competitor.wait_until_ready()
        os.sched_setaffinity(0, {options.cpu})
        warm_up, turns = plan(do, size, options)
        for competitor in competitors:
            competitor.turn(warm_up)
        for number, turn in enumerate(turns):
            for competitor in competitors if number % 2 == 0 else reversed(competitors):
                take_turn(competitor, turn)
    os.sched_setaffinity(0, options.cpus)
    return Part(do, size, competitors)


def plan(do: str, size: int, options: argparse.Namespace) -> tuple[Record, list[Record]]:
    """The command that warms up, and those of the turns that count."""
    if do == "train":
        updates = options.updates if size == EQUAL else -(-options.updates // 2)  # the large size takes its time
        return {"updates": options.warm_updates}, [{"updates": updates}] * options.turns
    turns: list[Record] = [{"split": "test", "beam_size": beam_size} for beam_size in (1, 5)]
    return {"split": "warm", "beam_size": 2}, turns * options.decode_turns


def take_turn(competitor: Competitor, command: Record) -> None:
    """One turn, with a line about it."""
    turn = competitor.turn(command)
    if turn.get("steps", [SIZES["steps"]]) != [SIZES["steps"]]:
        raise UserError(f"{competitor.name}: took {turn['steps']} steps instead of {SIZES['steps']}")
    competitor.turns.append(turn)
    print(f"{competitor.name}: {command}: {turn['speed']:,.0f} per second", file=sys.stderr)


def report(parts: Sequence[Part], options: argparse.Namespace) -> None:
    """Print the tables, and record."""
    kept = {key: value for key, value in options_of(options).items() if key not in ("environments", "cpus")}
    versions = {competitor.name: competitor.versions for part in parts for competitor in part.competitors}
    rows = [row for part in parts for row in rows_of(part)]
    value = {"options": kept, "sizes": SIZES, "rows": rows, "versions": versions, "differences": DIFFERENCES}
    publish("peers", {**value, "environment": describe("bench_peers")}, save=options.record)


def rows_of(part: Part) -> Iterator[Record]:
    """A row for each competitor and kind of turn, with its speed and the ratios to the peers."""
    kinds = {"training": None} if part.do == "train" else {"greedy": 1, "beam 5": 5}
    bases = [competitor for competitor in part.competitors if not competitor.name.startswith("ours")]
    for what, beam_size in kinds.items():
        for competitor in part.competitors:
            speeds = competitor.of_turns("speed", beam_size)
            ratios = {base.name: paired_ratio(speeds, base.of_turns("speed", beam_size)) for base in bases}
            peaks = competitor.of_turns("peak_mib", beam_size)  # so far: the mark only grows, and greedy comes first
            yield {
                "what": what if beam_size is None else f"decoding, {what}, {SIZES['steps']} steps forced",
                "unit": "tokens/s" if beam_size is None else "sentences/s",
                "hidden_size": part.hidden_size,
                "contestant": competitor.name,
                "speed": statistics.median(speeds),
                "speeds": speeds,
                **ratio_fields(ratios),
                "peak_mib": peaks[-1] if beam_size is None else peaks[0],
                "parameters": competitor.parameters,
            }


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few updates, 200 sentences, no large size")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="NAME")
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "peers", help="folder of the peers'")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the core to run on")
    parser.add_argument("--updates", type=int, help="updates per turn")
    parser.add_argument("--turns", type=int, help="of each in training")
    parser.add_argument("--decode-turns", type=int, help="decoding turns per system and beam size")
    parser.add_argument("--sentences", type=int, help="to translate, from the beginning of the test set")
    parser.add_argument("--record", action="store_true", help="write docs/speed/peers.json")
    options = parser.parse_args()
    if options.quick and options.record:
        parser.error("--quick: its figures are not for the record")
    defaults = {"updates": (8, 3), "turns": (5, 2), "decode_turns": (2, 1), "sentences": (1000, 200)}
    for name, (full, quick) in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else full)
    options.warm_updates = 3
    options.cpus = os.sched_getaffinity(0)
    return options


if __name__ == "__main__":
    sys.exit(exit_code(main))
