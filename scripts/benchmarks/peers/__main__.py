"""See scripts/bench_peers. Tokens are target tokens with EOS, without padding. A turn is some updates, the building of
their batches included, or the translation of all sentences in a given number of steps, the same for all."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench_peers_environments import PEERS, ROOT, ensure_environment

from seq2seq_attn.config import load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.files import write_json
from seq2seq_attn.runtime.environment import describe_environment
from seq2seq_attn.runtime.precision import cpu_multiplies_bf16

LIB = Path(__file__).resolve().parent
TEST_SET = "test_2016_flickr"
SIZES = {"embedding_size": 256, "batch_size": 64, "dropout": 0.3, "steps": 14}
EQUAL, LARGE = 512, 1024
SCRIPTS = {"joeynmt": "bench_peers_joeynmt.py", "OpenNMT-py": "bench_peers_opennmt.py", "ours": "bench_peers_ours.py"}
PRECISIONS = ("fp32", "bf16") if cpu_multiplies_bf16() else ("fp32",)  # emulated, bf16 would say nothing
OURS = {f"ours, {precision}": {"system": "ours", "precision": precision} for precision in PRECISIONS}
DIFFERENCES = (
    "The models are three functions: there is no numerical difference to tell, only their sizes to compare.",
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


class Contestant:
    """A process that waits for its turns."""

    def __init__(self, name, python, task, folder):
        self.name, self.peak_mib = name, 0.0
        self.turns = []
        self._log = Path(folder) / f"{name.replace(' ', '-')}.log"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        with self._log.open("w") as log:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
            command = [str(python), str(LIB / SCRIPTS[task["system"]]), json.dumps(task)]
            self._process = subprocess.Popen(command, env=environment, cwd=ROOT, text=True, **pipes)

    def wait_until_ready(self):
        """Keep what it says about itself."""
        about = self._read()
        self.parameters, self.versions = about["parameters"], about["versions"]

    def turn(self, **command):
        """Its answer; `speed`: what it is about, a second."""
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        return {**command, **answer, "speed": answer["amount"] / answer["seconds"]}

    def stop(self):
        """Its input ends, and so does it."""
        self._process.stdin.close()
        if self._process.wait() and sys.exc_info()[0] is None:
            self._fail()

    def speeds(self, beam_size=None):
        """Of its turns, in order."""
        return [turn["speed"] for turn in self.turns if turn.get("beam_size") == beam_size]

    def _read(self):
        line = self._process.stdout.readline()
        if not line:
            self._fail()
        answer = json.loads(line)
        self.peak_mib = answer["peak_mib"]
        return answer

    def _fail(self):
        raise SystemExit(f"{self.name} ended early:\n{self._log.read_text(errors='replace')[-3000:]}")


def main():
    """Time, compare, print, record."""
    options = parse(sys.argv[1:])
    pythons = {name: ensure_environment(name, options.environments) for name in options.peers}
    pythons["ours"] = Path(sys.executable)
    parts = []
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as folder:
        write_data(Path(folder), options)
        for do, size in (("train", EQUAL), ("decode", EQUAL), *([] if options.quick else [("train", LARGE)])):
            entrants = entries(options.peers, large=size == LARGE)
            if len(entrants) > len(OURS):
                parts.append(compete(do, size, entrants, pythons, folder, options))
    report(parts, options)


def entries(peers, *, large):
    """Name to what the process is told; the large size is OpenNMT-py's alone."""
    chosen = [name for name in peers if name == "OpenNMT-py" or not large]
    return {**{f"{name} {PEERS[name].version}": {"system": name} for name in chosen}, **OURS}


def write_data(folder, options):
    """The prepared corpus as sentences of tokens joined by blanks, and its vocabularies without the specials."""
    prepared = prepare_corpus(load_config(["multi30k"]))
    sides = {"source": ("de", prepared.source_vocab), "target": ("en", prepared.target_vocab)}
    for side, (language, vocab) in sides.items():
        (folder / f"{side}.vocab").write_text("".join(f"{token}\n" for token in vocab.tokens[4:]), encoding="utf-8")
        for split in ("train", "valid"):
            pairs = prepared.pairs(split)
            write_sentences(folder / f"{split}.{language}", getattr(pairs, side), vocab, len(pairs))
    for split, count in num_sentences(options).items():
        write_sentences(folder / f"{split}.de", prepared.pairs(TEST_SET).source, prepared.source_vocab, count)


def write_sentences(path, ids_of, vocab, count):
    """The first sentences of one side of a split, one a line."""
    lines = [" ".join(vocab.tokens_of(ids_of(i).tolist())) for i in range(count)]
    if any(len(line.split()) != len(ids_of(i)) for i, line in enumerate(lines)):
        raise SystemExit(f"{path}: a token holds a blank")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def num_sentences(options):
    """What is translated to warm up, and what counts."""
    return {"warm": min(64, options.sentences), "test": options.sentences}


def compete(do, size, entrants, pythons, folder, options):
    """All load, side by side; then they take turns."""
    common = {"do": do, "data": folder, "cpu": options.cpu, "hidden_size": size, **SIZES}
    common |= {"test_set": TEST_SET, "num_sentences": num_sentences(options)}
    with ExitStack() as stack:
        contestants = []
        for name, task in entrants.items():
            contestant = Contestant(name, pythons[task["system"]], {**common, **task}, folder)
            stack.callback(contestant.stop)
            contestants.append(contestant)
        for contestant in contestants:
            contestant.wait_until_ready()
        os.sched_setaffinity(0, {options.cpu})
        warm_up, turns = plan(do, size, options)
        for contestant in contestants:
            contestant.turn(**warm_up)
        for turn in turns:
            for contestant in contestants:
                take_turn(contestant, turn)
    os.sched_setaffinity(0, options.cpus)
    return {"do": do, "hidden_size": size, "contestants": contestants}


def plan(do, size, options):
    """What each does to warm up, and the turns that count."""
    if do == "train":
        updates = options.updates if size == EQUAL else -(-options.updates // 2)  # the large size takes its time
        return {"updates": options.warm_updates}, [{"updates": updates}] * options.turns
    turns = [{"split": "test", "beam_size": beam_size} for beam_size in (1, 5)]
    return {"split": "warm", "beam_size": 2}, turns * options.decode_turns


def take_turn(contestant, command):
    """One turn, with a line about it."""
    turn = contestant.turn(**command)
    if turn.get("steps", [SIZES["steps"]]) != [SIZES["steps"]]:
        raise SystemExit(f"{contestant.name}: took {turn['steps']} steps instead of {SIZES['steps']}")
    contestant.turns.append(turn)
    print(f"{contestant.name}: {command}: {turn['speed']:,.0f} a second", file=sys.stderr)


def report(parts, options):
    """The tables, and the record."""
    environment = describe_environment([Path(sys.argv[0]).name, *sys.argv[1:]], "cpu")
    contestants = [contestant for part in parts for contestant in part["contestants"]]
    versions = {contestant.name: contestant.versions for contestant in contestants}
    print(f"{environment['cpu']}, one core (CPU {options.cpu}), {environment['written_at']}")
    for name, found in versions.items():
        print(f"  {name}: " + ", ".join(f"{package} {version}" for package, version in found.items()))
    rows = [row for part in parts for row in rows_of(part)]
    for row in rows:
        if row["is_first"]:
            print(f"\n{row['what']}, hidden size {row['hidden_size']}")
            columns = "".join(f"{f'x {name}':>20}" for name in row["ratios"])
            print(f"{'':20}{row['unit']:>14}{columns}{'peak MiB':>12}{'parameters':>14}")
        ratios = "".join(f"{ratio:>20.2f}" for ratio in row["ratios"].values())
        print(f"{row['contestant']:20}{row['speed']:>14,.0f}{ratios}{row['peak_mib']:>12,.0f}{row['parameters']:>14,}")
    print("\nwhat is equal, and what is not:")
    for difference in DIFFERENCES:
        print(f"- {difference}")
    if options.record:
        kept = {key: value for key, value in vars(options).items() if key not in ("environments", "cpus")}
        rows = [{key: value for key, value in row.items() if key != "is_first"} for row in rows]
        value = {"options": kept, "sizes": SIZES, "rows": rows, "versions": versions, "differences": DIFFERENCES}
        write_json(ROOT / "docs" / "speed" / "peers.json", {**value, "environment": environment})


def rows_of(part):
    """A row for each contestant and kind of turn, with its speed and the ratios to the peers."""
    contestants = part["contestants"]
    kinds = {"training": None} if part["do"] == "train" else {"greedy": 1, "beam 5": 5}
    for what, beam_size in kinds.items():
        bases = [contestant for contestant in contestants if not contestant.name.startswith("ours")]
        for number, contestant in enumerate(contestants):
            speeds = contestant.speeds(beam_size)
            yield {
                "what": what if beam_size is None else f"decoding, {what}, {SIZES['steps']} steps forced",
                "unit": "tokens/s" if beam_size is None else "sentences/s",
                "hidden_size": part["hidden_size"],
                "contestant": contestant.name,
                "is_first": number == 0,
                "speed": statistics.median(speeds),
                "speeds": speeds,
                "ratios": {base.name: paired_ratio(speeds, base.speeds(beam_size)) for base in bases},
                "peak_mib": contestant.peak_mib,
                "parameters": contestant.parameters,
            }


def paired_ratio(speeds, base_speeds):
    """Median over turns of the ratio of speeds."""
    return statistics.median(a / b for a, b in zip(speeds, base_speeds, strict=True))


def parse(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench_peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few updates, 200 sentences, no large size")
    parser.add_argument("--peers", nargs="+", choices=list(PEERS), default=list(PEERS), metavar="NAME")
    parser.add_argument("--environments", type=Path, default=ROOT / "build" / "peers", help="folder of the peers'")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)), help="the core to run on")
    parser.add_argument("--updates", type=int, help="of a turn")
    parser.add_argument("--turns", type=int, help="of each in training")
    parser.add_argument("--decode-turns", type=int, help="of each and beam size in decoding")
    parser.add_argument("--sentences", type=int, help="to translate, from the beginning of the test set")
    parser.add_argument("--record", action="store_true", help="write docs/speed/peers.json")
    options = parser.parse_args(arguments)
    defaults = {"updates": (8, 3), "turns": (5, 2), "decode_turns": (2, 1), "sentences": (1000, 200)}
    for name, (full, quick) in defaults.items():
        if getattr(options, name) is None:
            setattr(options, name, quick if options.quick else full)
    options.warm_updates = 3
    options.cpus = os.sched_getaffinity(0)
    return options


if __name__ == "__main__":
    main()
