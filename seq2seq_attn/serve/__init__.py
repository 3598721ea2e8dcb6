"""A server for translation clients.

`serve_runs` listens. The HTTP application (`app`) answers requests. `batcher` makes batches of the
lines of all requests, and one process (`worker`) translates the batches.
"""

import logging
import multiprocessing
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

import uvicorn

from seq2seq_attn.data.processes import follow_parent
from seq2seq_attn.errors import UsageError
from seq2seq_attn.run import Run
from seq2seq_attn.serve.app import App
from seq2seq_attn.serve.worker import Pair, load_runs
from seq2seq_attn.text.languages import short_code

BACKLOG = 2_048
"""maximum number of connections that wait to be accepted"""
DRAIN_TIMEOUT_S = 60
"""maximum number of seconds to finish accepted requests after a signal"""

log = logging.getLogger(__name__)


def serve_runs(
    runs: Iterable[Run],
    *,
    host: str,
    port: int,
    max_characters: int,
    imports: Sequence[str] = (),
    machine: Mapping[str, str],
) -> None:
    """Serve runs until a signal ends the server. If the environment variable SEQ2SEQ_KEY is set,
    clients must send its value as their key.

    Args:
        port: port to listen at; 0 selects a free port.
        max_characters: maximum number of characters per request.
        imports: modules that define variants, imported before the runs are loaded.
        machine: `device` and `precision`, as in `load`.

    Raises:
        UsageError: as `group_runs`.
        UserError: as `load`.
        OSError: the address is in use.
    """
    groups = group_runs(runs)
    first_runs = {pair: same_languages[0] for pair, same_languages in groups.items()}
    page = [str(run.path) for run in next(iter(groups.values()))[:2]]
    page += [f"--import={name}" for name in imports]
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), follow_parent)
    with socket.create_server((host, port), family=family, backlog=BACKLOG) as listener, pool:
        # Without this option, the body of an answer is delayed by 40 ms.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        batch_sizes = pool.submit(load_runs, first_runs, imports, machine).result()
        app = App(pool, batch_sizes, page, os.environ.get("SEQ2SEQ_KEY", ""), max_characters)
        languages = ", ".join(f"{source} to {target}" for source, target in groups)
        log.info("%s: listening at %s, port %d", languages, host, listener.getsockname()[1])
        make_server(app).run([listener])


def group_runs(runs: Iterable[Run]) -> dict[Pair, list[Run]]:
    """Group the runs by source and target language.

    Raises:
        UsageError: a run does not read exactly one text. A run that reads vectors is rejected,
            because it would open files that clients name.
    """
    groups: dict[Pair, list[Run]] = {}
    for run in runs:
        data = run.config.data
        if not data.layout.is_one_text:
            raise UsageError(
                f"{run.path}: reads {data.source_name}; only runs that read one text are served"
            )
        pair = short_code(data.sources[0]), short_code(data.target_language)
        groups.setdefault(pair, []).append(run)
    return groups


def make_server(app: App) -> uvicorn.Server:
    """Return a server of the application. After a signal, the server finishes the requests that it
    has accepted and ends."""
    uvicorn_log = logging.getLogger("uvicorn")
    uvicorn_log.parent = log  # so that its warnings appear in our log
    uvicorn_log.setLevel(logging.WARNING)
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_TIMEOUT_S,
    )
    return uvicorn.Server(config)
