"""Training and decoding speed of JoeyNMT and OpenNMT-py against ours: same tokens, same sizes, one
core.

All speeds are those that the commands themselves log: target tokens/s with EOS, without padding,
the building of batches included; seconds of a translation without loading. The models of the
decoding turns are untrained and hardly ever choose end-of-sentence, so that all make nearly the
same number of steps. Configurations: `peer_configs/`.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

import yaml

from scripts.laboratory.benchmarks.measure import build_parser, publish, toy_corpus
from scripts.laboratory.harness.records import ROOT, Record, set_arguments
from scripts.laboratory.harness.turns import Contestant, precisions, ratio_fields, take_turns
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import write_lines

CONFIGS = Path(__file__).parent / "peer_configs"
ENVIRONMENTS = ROOT / "build" / "peers"
TEST_SET = "test_2016_flickr"
NUM_STEPS = 14
OUR_DECODING = """
import sys, time
from seq2seq_attn import load
run, precision, beam_size, source, output = sys.argv[1:]
translator, lines = load(run, "cpu", precision=precision), open(source).read().splitlines()
translator.translate(lines[:64])
began_at = time.perf_counter()
found = translator.translate(lines, beam_size=int(beam_size), keep_attention=False)
print("took", time.perf_counter() - began_at, file=sys.stderr)
open(output, "w").write("".join(" ".join(one.tokens) + "\\n" for one in found))
"""
ONE_CORE = {
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1",
}
"""environment variables; OpenNMT-py's checkpoints need torch's former way of loading"""


class System(NamedTuple):
    """A toolkit: its package, what it imports, its commands, and regular expressions for what they
    log."""

    package: str
    needs: str
    config: str
    train: str
    translate: str
    parameters: str
    tokens_per_s: str
    seconds: str


SYSTEMS = yaml.safe_load((CONFIGS / "systems.yaml").read_text(encoding="utf-8"))
PEERS = {name: System(**values) for name, values in SYSTEMS["peers"].items()}
OURS = System(package="", needs="", **SYSTEMS["ours"])
TASK: Record = {
    "use_cuda": "false",
    "learning_rate": "1.0e-3",
    "updates": 1,
    "window": 1,
    "num_sentences": 0,
    "steps": NUM_STEPS,
    "beam_size": 1,
    "topk": 1,
}
"""the values of `peer_configs/` and of the commands where a turn sets no others; no sentences: a
turn trains"""


class Amount(NamedTuple):
    """How much each turn does; speed is that of a turn's last window of updates."""

    turns: int
    window: int
    sentences: int
    decoding_turns: int
    hidden_size: int


FULL = Amount(5, 16, 1000, 2, 512)
QUICK = Amount(1, 1, 8, 1, 16)


class Competitor(Contestant):
    """A system whose turn is a command that logs its speed."""

    def __init__(
        self,
        name: str,
        system: System,
        python: Path,
        settings: Sequence[str] = (),
        *,
        num_windows: int = 1,
    ) -> None:
        """`num_windows` multiplies the updates of a turn, and those that the speed is measured
        over."""
        super().__init__(name, lambda _: 0.0)
        self.task: Record = {}
        self.num_parameters = 0
        self.peak_mib: float | None = None
        self._system = system
        self._python = python
        self._settings = settings
        self._num_windows = num_windows

    def turn(self, number: int) -> None:
        """Fill in the configuration, run the command, keep its speed and its peak memory."""
        system = self._system
        num_sentences = self.task["num_sentences"]
        folder = self.task["folder"]
        values = {
            **self.task,
            "updates": self._num_windows * self.task["updates"],
            "window": self._num_windows * self.task["window"],
            "config": folder / system.config,
            "precision": self.name.removeprefix("ours, "),
            "our_decoding": OUR_DECODING,
        }
        config = (CONFIGS / system.config).read_text(encoding="utf-8")
        write_lines(folder / system.config, [Template(config).substitute(values)])
        words = (system.translate if num_sentences else system.train).split()
        command = [str(self._python), *(Template(word).substitute(values) for word in words)]
        log, usage = run_logged(command if num_sentences else [*command, *self._settings])
        self.peak_mib = usage.peak_mib
        logged = re.findall(system.seconds if num_sentences else system.tokens_per_s, log)
        if not logged:
            raise UserError(f"{self.name}: no speed in its log:\n{log[-3000:]}")
        speed = float(logged[-1])
        if num_sentences:
            speed = num_sentences / speed
            if not self.task["is_toy"]:  # its random weights choose EOS soon
                self._check_lengths(folder / "output.test")
        else:
            self.num_parameters = int(re.findall(system.parameters, log)[-1])
        self.speeds.append(speed)
        print(f"{self.name}: {speed:,.0f} per second", file=sys.stderr)

    def _check_lengths(self, path: Path) -> None:
        """JoeyNMT cannot forbid the end of a sentence: it reads `min_output_length`, but does not
        use it.

        Raises:
            UserError: other systems made translations of another length.
        """
        lines = path.read_text(encoding="utf-8").splitlines()
        num_tokens = [len(line.split(" ")) for line in lines]
        if max(num_tokens) > NUM_STEPS or sum(num_tokens) < 0.99 * NUM_STEPS * len(lines):
            lengths = sorted(set(num_tokens))
            raise UserError(f"{self.name}: {lengths} tokens; expected nearly all of {NUM_STEPS}")


class Usage(NamedTuple):
    """The time and memory that a command used. CPU time is user and system time. The peak of its
    resident memory is None if it is unknown: a process starts as a copy of its parent, so a peak
    below the parent's cannot be seen."""

    cpu_s: float
    wall_s: float
    peak_mib: float | None


def run_logged(
    command: Sequence[str], source: Path | None = None, output: Path | None = None
) -> tuple[str, Usage]:
    """Run a command, from a file and to a file. Returns its stderr and what it took.

    Raises:
        UserError: it failed.
    """
    began_at = time.monotonic()
    with (
        tempfile.TemporaryFile() as errors,
        (source or Path(os.devnull)).open("rb") as stdin,
        (output or Path(os.devnull)).open("wb") as stdout,
    ):
        process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=errors, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(
            status
        )  # which Popen cannot ask for after `wait4`
        errors.seek(0)
        log = errors.read().decode(errors="replace").strip()
    if process.returncode:
        raise UserError(f"{' '.join(command)}: exit code {process.returncode}:\n{log[-3000:]}")
    is_hidden = usage.ru_maxrss <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak_mib = None if is_hidden else usage.ru_maxrss / 1024
    return log, Usage(usage.ru_utime + usage.ru_stime, time.monotonic() - began_at, peak_mib)


def main(arguments: Sequence[str]) -> None:
    """Install the peers where they are missing; time, compare, print, record."""
    options = build_parser("peers", __doc__).parse_args(arguments)
    pythons = {name: ensure_environment(system) for name, system in PEERS.items()}
    amount = QUICK if options.quick else FULL
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ.update(ONE_CORE)
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as folder:
        rows = list(measure(pythons, Path(folder), amount, is_toy=options.quick))
    packages = {name: dict([system.package.split("==")]) for name, system in PEERS.items()}
    about = {
        "options": amount._asdict(),
        "sizes": {"steps": NUM_STEPS},
        "rows": rows,
        "versions": packages,
    }
    publish({**about, "differences": SYSTEMS["differences"]}, options.record)


def measure(
    pythons: dict[str, Path], folder: Path, amount: Amount, *, is_toy: bool
) -> Iterator[Record]:
    """The rows of a record: training, then greedy and beam search."""
    settings = toy_corpus(folder / "toy") if is_toy else {}
    test_set = "valid" if is_toy else TEST_SET
    write_data(folder, load_config(["multi30k"], settings), amount.sentences, test_set)
    competitors = [Competitor(name, PEERS[name], python) for name, python in pythons.items()]
    ours = (*set_arguments(settings), "--device", "cpu")
    competitors += [
        Competitor(f"ours, {name}", OURS, Path(sys.executable), ours) for name in precisions("cpu")
    ]
    common = {**TASK, "folder": folder, "is_toy": is_toy, "hidden_size": amount.hidden_size}
    task = {"updates": 2 * amount.window, "window": amount.window}
    yield from compete("training", competitors, common | task, amount.turns)
    untrained = {**common, "learning_rate": "1.0e-9"}
    list(compete("training", competitors, untrained, 1))
    for beam_size, name in ((1, "greedy"), (5, "beam 5")):
        task = {
            "beam_size": beam_size,
            "topk": int(beam_size == 1),
            "num_sentences": amount.sentences,
        }
        what = f"decoding, {name}, {NUM_STEPS} steps forced"
        yield from compete(what, competitors, untrained | task, amount.decoding_turns)


def compete(
    what: str, competitors: list[Competitor], task: Record, num_turns: int
) -> Iterator[Record]:
    """Take turns; a row for each competitor, with its ratios to the peers."""
    for competitor in competitors:
        competitor.task = {**task, "half_size": task["hidden_size"] // 2}
    take_turns(competitors, num_turns)
    bases = [competitor for competitor in competitors if not competitor.name.startswith("ours")]
    for competitor in competitors:
        yield {
            "what": what,
            "unit": "tokens/s" if what == "training" else "sentences/s",
            "hidden_size": task["hidden_size"],
            "contestant": competitor.name,
            "speed": competitor.speed,
            "speeds": list(competitor.speeds),
            **ratio_fields(competitor, bases),
            "peak_mib": competitor.peak_mib,
            "parameters": competitor.num_parameters,
        }


def write_data(
    folder: Path,
    config: Config,
    num_sentences: int | None,
    test_set: str,
    *,
    num_valid: int | None = 8,
) -> None:
    """The prepared corpus as sentences of tokens joined by spaces, its vocabularies, and raw text
    for our decoding.

    Raises:
        UserError: a token holds a space.
    """
    prepared = prepare_corpus(config)
    splits = {
        "train": ("train", None),
        "valid": ("valid", num_valid),
        "test": (test_set, num_sentences),
    }
    write_lines(folder / "raw.de", prepared.text(test_set)[0][:num_sentences])
    for side, vocab, language in (
        ("source", prepared.source_vocab, "de"),
        ("target", prepared.target_vocab, "en"),
    ):
        write_lines(folder / f"{side}.vocab", vocab.tokens[4:])
        for name, (split, count) in splits.items():
            pairs = prepared.pairs(split)
            lines = []
            for i in range(min(len(pairs), count or len(pairs))):
                tokens = vocab.tokens_of(getattr(pairs, f"{side}_ids")[i].tolist())
                lines.append(" ".join(tokens))
                if len(lines[-1].split()) != len(tokens):
                    raise UserError(f"{split}: a token holds a space")
            write_lines(folder / f"{name}.{language}", lines)


def ensure_environment(system: System) -> Path:
    """The interpreter of a peer's environment, build/peers/NAME, which is made if the package is
    missing there."""
    folder = ENVIRONMENTS / system.package.split("==")[0]
    python = folder / "bin" / "python"
    if is_installed(system):
        return python
    print(f"making {folder} (a few minutes)", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    constrained = [
        *install,
        "-c",
        str(ROOT / "constraints.txt"),
    ]  # the same torch and numpy for all
    subprocess.run([*constrained, "torch"], check=True)
    subprocess.run([*install, "--no-deps", system.package], check=True)
    subprocess.run([*constrained, *system.needs.split()], check=True)
    return python


def is_installed(system: System) -> bool:
    """Whether a peer's environment has the package, in its version."""
    name, version = system.package.split("==")
    python = ENVIRONMENTS / name / "bin" / "python"
    module = system.train.split()[1]
    test = f"import importlib.metadata as m, {module}; assert m.version({name!r}) == {version!r}"
    return (
        python.exists()
        and subprocess.run([python, "-c", test], capture_output=True).returncode == 0
    )
