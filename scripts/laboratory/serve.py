"""The server under load: speed beside `translate`, latency, memory.

Speeds are compared in paired turns. A client sends its next request when it has the answer to its
last.
"""

import argparse
import asyncio
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from scripts.laboratory.benchmarks.measure import publish
from scripts.laboratory.benchmarks.prepare import proportional_bytes
from scripts.laboratory.harness.records import RECORDS, Record
from scripts.laboratory.harness.runs import SEQ2SEQ
from scripts.laboratory.harness.turns import Contestant, paired_ratio, take_turns
from seq2seq_attn import load
from seq2seq_attn.errors import UserError
from seq2seq_attn.runtime.memory import keep_memory_flat
from seq2seq_attn.text.captions import find_captions
from seq2seq_attn.text.lines import read_lines

DEFAULT_RUN = Path("runs/lab/demo/demo-attention-s1")
START_TIMEOUT_S = 120.0
HEAD = (
    "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    "Content-Length: "
)


class Amount(NamedTuple):
    """How much is measured."""

    turns: int = 3
    turn_s: float = 20.0
    clients: int = 200
    alone: int = 100


QUICK = Amount(turns=1, turn_s=1.0, clients=20, alone=5)


class Answer(NamedTuple):
    """The answer to a request."""

    sentence: int
    status: int
    text: str
    seconds: float


class Server(NamedTuple):
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int


@contextmanager
def running(run: Path) -> Iterator[Server]:
    """A server of a run, which is killed in the end."""
    command = [*SEQ2SEQ, "serve", str(run), "--port", "0"]
    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen(command, stderr=log)
        try:
            yield Server(process, wait_for_port(process, Path(log.name)))
        finally:
            process.kill()
            process.wait()


def wait_for_port(process: subprocess.Popen[bytes], log_path: Path) -> int:
    """The port that a server logs once it listens.

    Raises:
        UserError: it ends before, or takes too long.
    """
    stop_at = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < stop_at:
        log = log_path.read_text(encoding="utf-8")
        listening = re.search(r"listening at \S+, port (\d+)", log)
        if listening is not None:
            return int(listening[1])
        time.sleep(0.1)
    raise UserError(f"the server did not start: {log_path.read_text(encoding='utf-8')}")


async def client(
    port: int, sentences: Sequence[tuple[int, str]], stop_at: float, answers: list[Answer]
) -> None:
    """Ask for one sentence after another, again from the start, until a time on the monotonic
    clock."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for sentence, text in itertools.cycle(sentences):
        sent_at = time.monotonic()
        if sent_at >= stop_at:
            break
        request = json.dumps({"q": text, "source": "de", "target": "en"})
        writer.write(f"{HEAD}{len(request)}\r\n\r\n{request}".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.findall(r"(?i)content-length: (\d+)", head)[0]
        answer = json.loads(await reader.readexactly(int(length)))
        status = int(head.split(" ")[1])
        translation = answer.get("translatedText", "")
        answers.append(Answer(sentence, status, translation, time.monotonic() - sent_at))
    writer.close()
    await writer.wait_closed()


def ask_all(port: int, texts: Sequence[str], num_clients: int, seconds: float) -> list[Answer]:
    """The answers to clients that ask for sentences in an order of their own for some time."""
    answers: list[Answer] = []

    async def ask() -> None:
        stop_at = time.monotonic() + seconds
        clients = []
        for number in range(num_clients):
            order = random.Random(number).sample([*enumerate(texts)], len(texts))
            clients.append(client(port, order, stop_at, answers))
        await asyncio.gather(*clients)

    asyncio.run(ask())
    return answers


def percentiles_ms(answers: Sequence[Answer]) -> Record:
    """The least latency, the median and the 99th percentile."""
    times_ms = [1000 * answer.seconds for answer in answers if answer.status == 200]
    quantiles = statistics.quantiles(times_ms, n=100, method="inclusive")
    return {"least_ms": min(times_ms), "p50_ms": quantiles[49], "p99_ms": quantiles[98]}


def measure(run: Path, amount: Amount) -> Record:
    """All figures."""
    keep_memory_flat()
    translator = load(run, "cpu")
    texts = list(dict.fromkeys(read_lines(find_captions(None, "de", "en")["test"].source)))
    expected = [each.text for each in translator.translate(texts, keep_attention=False)]
    answers: list[Answer] = []
    memory: list[float] = []

    def serve(_: int) -> float:
        turn = ask_all(server.port, texts, amount.clients, amount.turn_s)
        answers.extend(turn)
        memory.append(proportional_bytes(server.process.pid) / 2**20)
        return sum(answer.status == 200 for answer in turn)

    def translate(_: int) -> float:
        stop_at = time.perf_counter() + amount.turn_s
        count = 0
        while time.perf_counter() < stop_at:
            translator.translate(texts, keep_attention=False)
            count += len(texts)
        return count

    with running(run) as server:
        ask_all(server.port, texts, 1, 1.0)
        alone: list[Answer] = []
        while len(alone) < amount.alone:
            alone += ask_all(server.port, texts, 1, 0.5)
        contestants = [Contestant("serve", serve), Contestant("translate", translate)]
        take_turns(contestants, amount.turns)
    translated = [answer for answer in answers if answer.status == 200]
    wrong = [answer for answer in translated if answer.text != expected[answer.sentence]]
    clients = {
        "requests": len(answers),
        "failed": len(answers) - len(translated),
        "wrong": len(wrong),
    }
    ratio = paired_ratio(contestants[0].speeds, contestants[1].speeds)
    return {
        "run": run.name,
        "amount": amount._asdict(),
        "load_average": os.getloadavg()[0],
        "alone": {"requests": len(alone), **percentiles_ms(alone)},
        "clients": {**clients, **percentiles_ms(answers)},
        "sentences_per_s": {one.name: one.speed for one in contestants},
        "ratio": ratio.value,
        "interval": [ratio.low, ratio.high],
        "memory_mib": memory,
    }


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="scripts/lab serve", description=__doc__)
    parser.add_argument(
        "run", type=Path, nargs="?", default=DEFAULT_RUN, help=f"a run; default: {DEFAULT_RUN}"
    )
    parser.add_argument(
        "--record",
        type=Path,
        nargs="?",
        const=RECORDS / "serve.json",
        help="write the record docs/records/serve.json",
    )
    options = parser.parse_args(arguments)
    publish(measure(options.run, Amount()), options.record)
