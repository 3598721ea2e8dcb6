"""The server under load: speed beside `translate`, latency, memory, malformed requests, and a stop
in mid-flight.

Speeds are compared in paired turns. A client sends its next request when it has the answer to its
last.
"""

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from scripts.laboratory.benchmarks.measure import publish
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


class Amount(NamedTuple):
    """How much is measured."""

    turns: int = 3
    turn_s: float = 20.0
    clients: int = 200
    alone: int = 100
    malformed: int = 10_000


QUICK = Amount(turns=1, turn_s=1.0, clients=20, alone=5, malformed=200)


class Answer(NamedTuple):
    """The answer to a request; status 0: the connection was closed or refused."""

    sentence: int
    status: int
    text: str
    sent_at: float
    seconds: float


class Server(NamedTuple):
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int
    log_path: Path

    def log_lines(self) -> list[str]:
        """The lines of its log so far."""
        return self.log_path.read_text(encoding="utf-8").splitlines()

    def processes(self) -> list[Path]:
        """The folders in /proc of its processes, itself first."""
        own = Path(f"/proc/{self.process.pid}")
        children = (own / "task" / own.name / "children").read_text(encoding="utf-8").split()
        return [own, *(own.with_name(child) for child in children)]

    def cpu_ms(self) -> Counter[str]:
        """CPU milliseconds of each of its processes so far."""
        times = Counter[str]()
        for folder in self.processes():
            fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            times[folder.name] = (
                1000 * (int(fields[11]) + int(fields[12])) // os.sysconf("SC_CLK_TCK")
            )
        return times

    def memory_mib(self) -> float:
        """The resident memory of its processes."""
        statuses = [(folder / "status").read_text(encoding="utf-8") for folder in self.processes()]
        return sum(int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) for status in statuses) / 1024


@contextmanager
def running(run: Path, folder: Path, *arguments: str) -> Iterator[Server]:
    """A server of a run, which is killed in the end if it still runs."""
    log_path = folder / "serve.log"
    with log_path.open("wb") as file:
        process = subprocess.Popen(
            [*SEQ2SEQ, "serve", str(run), "--port", "0", *arguments], stderr=file
        )
    try:
        stop_at = time.monotonic() + START_TIMEOUT_S
        while not (
            found := re.search(
                r"listening at \S+, port (\d+)", log_path.read_text(encoding="utf-8")
            )
        ):
            if process.poll() is not None or time.monotonic() > stop_at:
                raise UserError(
                    f"{run}: the server did not start: {log_path.read_text(encoding='utf-8')}"
                )
            time.sleep(0.1)
        yield Server(process, int(found[1]), log_path)
    finally:
        process.kill()
        process.wait()


def translation_request(text: str) -> bytes:
    """A request for one text from German to English."""
    body = json.dumps({"q": text, "source": "de", "target": "en"}).encode()
    head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body. Raises IncompleteReadError or OSError if the connection ends before."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: (\d+)", head)
    return int(head.split(b" ", 2)[1]), await reader.readexactly(int(length[1]) if length else 0)


async def client(
    port: int, sentences: Sequence[tuple[int, str]], stop_at: float, answers: list[Answer]
) -> None:
    """Ask for one sentence after another, again from the start, until a time on the monotonic clock
    or an error."""
    number = 0
    sentence, sent_at = sentences[0][0], time.monotonic()
    writer = None
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.monotonic() < stop_at:
            sentence, text = sentences[number % len(sentences)]
            number += 1
            sent_at = time.monotonic()
            writer.write(translation_request(text))
            status, body = await read_answer(reader)
            translated = json.loads(body)["translatedText"] if status == 200 else ""
            answers.append(
                Answer(sentence, status, translated, sent_at, time.monotonic() - sent_at)
            )
    except (OSError, EOFError):
        answers.append(Answer(sentence, 0, "", sent_at, time.monotonic() - sent_at))
    finally:
        await close(writer)


async def close(writer: asyncio.StreamWriter | None) -> None:
    """Close a connection, which may be broken."""
    if writer is not None:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def ask_all(
    port: int,
    texts: Sequence[str],
    num_clients: int,
    seconds: float,
    *,
    after: tuple[float, Callable[[], object]] | None = None,
) -> list[Answer]:
    """The answers to clients that ask for sentences in an order of their own for some time. `after`
    some seconds, something is done."""
    answers: list[Answer] = []

    async def ask() -> None:
        stop_at = time.monotonic() + seconds
        if after is not None:
            asyncio.get_running_loop().call_later(*after)
        orders = [
            random.Random(number).sample([*enumerate(texts)], len(texts))
            for number in range(num_clients)
        ]
        await asyncio.gather(*(client(port, order, stop_at, answers) for order in orders))

    asyncio.run(ask())
    return answers


def percentiles_ms(answers: Sequence[Answer]) -> Record:
    """The least latency, the median and the 99th percentile."""
    seconds = [answer.seconds for answer in answers if answer.status == 200]
    quantiles = statistics.quantiles(seconds, n=100, method="inclusive")
    return {
        "least_ms": 1000 * min(seconds),
        "p50_ms": 1000 * quantiles[49],
        "p99_ms": 1000 * quantiles[98],
    }


def split_processes(cpu_ms: Counter[str], count: int) -> dict[str, float]:
    """CPU milliseconds per request: of the process that translates, which is the busiest, and of
    the others."""
    most = max(cpu_ms.values())
    return {"serve": most / count, "http": (cpu_ms.total() - most) / count}


def malformed_requests(number: int) -> Iterator[bytes]:
    """Requests that no server should accept, drawn at random."""
    draw = random.Random(1)
    good = json.dumps({"q": "Ein Hund.", "source": "de", "target": "en"})
    bodies = [
        *(
            good[:20],
            "[]",
            "null",
            "1",
            '"q"',
            "{}",
            "[" * 5_000,
            '{"q": 1, "target": "en"}',
            good.replace("de", "xx"),
        ),
        *(
            good.replace('"en"', "[]"),
            good.replace("Hund", "\\ud800"),
            good[:-1] + ', "format": "html"}',
        ),
        *(
            json.dumps({"q": "a" * 20_000, "target": "en"}),
            '{"q": [["a"]], "target": "en"}',
            good.replace("q", "p"),
        ),
    ]
    for _ in range(number):
        kind = draw.randrange(6)
        body = draw.choice(bodies).encode()
        path, method, content_type = (
            draw.choice(["/translate", "/detect", "/v2/translate"]),
            "POST",
            "application/json",
        )
        if kind == 0:
            yield draw.randbytes(30).replace(b"\n", b"?") + b"\r\n\r\n"
            continue
        if kind == 1:
            body = draw.randbytes(draw.randrange(200))
        elif kind == 2:
            path = draw.choice(
                ["/x", "/../etc/passwd", "/translate/", f"/{'a' * 3_000}", "/%00", "/v2/usage"]
            )
        elif kind == 3:
            method = draw.choice(["PUT", "DELETE", "PATCH", "OPTIONS"])
        elif kind == 4:
            content_type = draw.choice(
                ["text/plain", "multipart/form-data; boundary=x", "\xff", "application/xml"]
            )
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}"
        yield f"{head}\r\nConnection: close\r\n\r\n".encode("latin-1") + body


def send_malformed(port: int, number: int) -> Record:
    """How many malformed requests got which status."""
    statuses = Counter[str]()

    async def send(requests: Iterator[bytes]) -> None:
        for request in requests:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(request)
                status, _ = await read_answer(reader)
            except (OSError, EOFError):
                status = 0
            statuses[str(status)] += 1
            await close(writer)

    async def send_all() -> None:
        requests = malformed_requests(number)
        await asyncio.gather(*(send(requests) for _ in range(8)))

    asyncio.run(send_all())
    return dict(sorted(statuses.items()))


def measure(run: Path, amount: Amount) -> Record:
    """All figures."""
    keep_memory_flat()
    translator = load(run, "cpu")
    files = find_captions(None, "de", "en")["test"]
    texts = list(dict.fromkeys(read_lines(files.source)))
    expected = [each.text for each in translator.translate(texts, keep_attention=False)]
    answers: list[Answer] = []
    memory: list[float] = []
    cpu_ms: dict[str, list[float]] = {"serve": [], "http": [], "translate": []}
    with tempfile.TemporaryDirectory() as folder, running(run, Path(folder)) as server:
        ask_all(server.port, texts, 1, 1.0)
        alone: list[Answer] = []
        before = server.cpu_ms()
        while len(alone) < amount.alone:
            alone += ask_all(server.port, texts, 1, 0.5)
        alone_ms = split_processes(server.cpu_ms() - before, len(alone))

        def serve(_: int) -> float:
            before = server.cpu_ms()
            turn = ask_all(server.port, texts, amount.clients, amount.turn_s)
            answers.extend(turn)
            memory.append(server.memory_mib())
            for name, spent in split_processes(server.cpu_ms() - before, len(turn)).items():
                cpu_ms[name].append(spent)
            return sum(answer.status == 200 for answer in turn)

        def translate(_: int) -> float:
            began_at, cpu_began_at, count = time.perf_counter(), time.process_time(), 0
            while time.perf_counter() < began_at + amount.turn_s:
                translator.translate(texts, keep_attention=False)
                count += len(texts)
            cpu_ms["translate"].append(1000 * (time.process_time() - cpu_began_at) / count)
            return count

        contestants = [Contestant("serve", serve), Contestant("translate", translate)]
        take_turns(contestants, amount.turns)
        num_lines = len(server.log_lines())
        statuses = send_malformed(server.port, amount.malformed)
        time.sleep(1.0)  # a line is written after its answer
        num_malformed_lines = len(server.log_lines()) - num_lines
        stopped = stop_in_mid_flight(server, texts, amount)
    ratio = paired_ratio(contestants[0].speeds, contestants[1].speeds)
    return {
        "run": run.name,
        "amount": amount._asdict(),
        "load_average": os.getloadavg()[0],
        "alone": {"requests": len(alone), **percentiles_ms(alone), "cpu_ms": alone_ms},
        "clients": {
            "requests": len(answers),
            "failed": sum(answer.status != 200 for answer in answers),
            "wrong": sum(
                answer.text != expected[answer.sentence]
                for answer in answers
                if answer.status == 200
            ),
            **percentiles_ms(answers),
        },
        "sentences_per_s": {one.name: one.speed for one in contestants},
        "cpu_ms_per_sentence": {name: statistics.median(values) for name, values in cpu_ms.items()},
        "ratio": ratio.value,
        "interval": [ratio.low, ratio.high],
        "memory_mib": memory,
        "malformed": {"statuses": statuses, "log_lines": num_malformed_lines},
        "stop": stopped,
    }


def stop_in_mid_flight(server: Server, texts: Sequence[str], amount: Amount) -> Record:
    """SIGTERM while clients wait: how many requests the server accepted (those in its log), how
    many were answered, and how many of those that were sent before the signal were lost."""
    done = "POST /translate 200"
    before = sum(done in line for line in server.log_lines())
    killed_at: list[float] = []

    def kill() -> None:
        killed_at.append(time.monotonic())
        server.process.terminate()

    answers = ask_all(server.port, texts, amount.clients, 60.0, after=(2.0, kill))
    code = server.process.wait(timeout=60)
    return {
        "exit_code": code,
        "accepted": sum(done in line for line in server.log_lines()) - before,
        "answered": sum(answer.status == 200 for answer in answers),
        "waiting": sum(
            answer.sent_at < killed_at[0] < answer.sent_at + answer.seconds for answer in answers
        ),
        "lost": sum(
            answer.status != 200 and answer.sent_at < killed_at[0] - 0.1 for answer in answers
        ),
    }


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="scripts/lab serve", description=__doc__)
    parser.add_argument(
        "run", type=Path, nargs="?", default=DEFAULT_RUN, help=f"a run; default: {DEFAULT_RUN}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that it works; never a record"
    )
    path = RECORDS / "serve.json"
    parser.add_argument(
        "--record",
        type=Path,
        nargs="?",
        const=path,
        help="write the record docs/records/serve.json",
    )
    options = parser.parse_args(arguments)
    publish(measure(options.run, QUICK if options.quick else Amount()), options.record)
