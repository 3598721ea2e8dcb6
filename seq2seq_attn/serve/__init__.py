"""A server for translation clients.

`serve_runs` starts the server. The HTTP application (`app`) answers requests. `batcher` makes
batches of the lines of all requests, and a second process (`worker`) translates the batches.
"""

import asyncio
import logging
import multiprocessing
import socket
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor

import uvicorn

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import MANIFEST, read_regular
from seq2seq_attn.run import Run
from seq2seq_attn.serve.app import App
from seq2seq_attn.serve.connections import BACKLOG, Connection
from seq2seq_attn.serve.log_thread import logging_in_background
from seq2seq_attn.serve.page import Page
from seq2seq_attn.serve.requests import Access
from seq2seq_attn.serve.worker import Pair, load_runs, start_worker
from seq2seq_attn.text.languages import short_code

DRAIN_TIMEOUT_S = 60
"""maximum number of seconds to answer the accepted requests after a signal"""

log = logging.getLogger(__name__)


def serve_runs(
    runs: Iterable[Run],
    *,
    host: str,
    port: int,
    access: Access,
    imports: Sequence[str] = (),
    machine: Mapping[str, str],
) -> None:
    """Serve the first run of each pair of languages until a signal ends the server.

    Args:
        port: port to listen at; 0 selects a free port.
        access: limits, and which clients may ask.
        imports: modules that define variants, imported before the runs are loaded.
        machine: `device` and `precision`, as in `load`.

    Raises:
        UsageError: a run does not read exactly one text.
        UserError: as `load` and `listen`, a run was replaced, or the process that translates has
            died.
    """
    groups = group_runs(runs)
    first_runs = {pair: same_languages[0] for pair, same_languages in groups.items()}
    page_runs = next(iter(groups.values()))[:2]
    used_runs = [*first_runs.values(), *page_runs]
    manifests = read_manifests(used_runs)
    arguments = [str(run.path) for run in page_runs]
    arguments += [f"--import={name}" for name in imports]
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), start_worker)
    with logging_in_background(), listen(host, port) as listener:
        try:
            served = pool.submit(load_runs, first_runs, imports, machine).result()
            if read_manifests(used_runs) != manifests:
                raise UserError("a run was replaced while it was loaded; start the server again")
            access = access._replace(hosts=[*access.hosts, host])
            page = Page(arguments, lambda: read_manifests(used_runs) == manifests)
            app = App(pool, served, page, access)
            languages = ", ".join(f"{source} to {target}" for source, target in groups)
            log.info("%s: listening at %s, port %d", languages, host, listener.getsockname()[1])
            asyncio.run(run_server(app, listener))
        finally:
            for process in multiprocessing.active_children():
                process.kill()  # a translation in progress would delay the end
            pool.shutdown()
    if app.is_broken:
        raise UserError("the process that translates has died, perhaps for lack of memory")


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address of this machine. Raises UserError: the address is
    in use, or not an address of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        # the text of the error names host and port
        raise UserError(f"{error.strerror}; choose another --port or --host") from None
    # Without this option, the body of an answer is delayed by 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


async def run_server(app: App, listener: socket.socket) -> None:
    """Answer requests until a signal arrives or the process that translates dies."""
    server = make_server(app)
    loop = asyncio.get_running_loop()
    [worker] = multiprocessing.active_children()

    def end() -> None:
        loop.remove_reader(worker.sentinel)
        app.is_broken = True
        server.should_exit = True

    loop.add_reader(worker.sentinel, end)
    app.page.start()
    await server.serve([listener])


def read_manifests(runs: Iterable[Run]) -> list[bytes]:
    """Return the manifests of runs. The manifest of a run changes when the run is replaced."""
    return [read_regular(run.path / MANIFEST) for run in runs]


def group_runs(runs: Iterable[Run]) -> dict[Pair, list[Run]]:
    """Group the runs by source and target language.

    Raises:
        UsageError: a run does not read exactly one text. Runs that read vectors are rejected,
            because these runs would open files that clients name.
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
    uvicorn_log.parent = log  # so that warnings of uvicorn appear in the log of the server
    uvicorn_log.setLevel(logging.WARNING)
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http=Connection,
        ws="none",
        lifespan="off",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=DRAIN_TIMEOUT_S,
    )
    return uvicorn.Server(config)
