"""`seq2seq serve`."""

import multiprocessing
import os
import socket
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from seq2seq_attn.cli import options as shared
from seq2seq_attn.errors import UserError


@shared.command()
def serve(
    runs: Annotated[
        list[Path] | None,
        shared.runs_argument(help="Run directories, one for each pair of languages."),
    ] = None,
    host: Annotated[
        str, shared.option("ADDRESS", "Address to listen at; 0.0.0.0: every one.")
    ] = "127.0.0.1",
    port: Annotated[
        int, shared.option("N", "Port; 0: one that is free.", min=0, max=65_535)
    ] = 5000,
    max_characters: Annotated[
        int, shared.option("N", "Characters per request.", default="10,000", min=1)
    ] = 10_000,
    imports: list[str] | None = None,
    device: shared.Device = "auto",
    precision: shared.TranslationPrecision = "auto",
) -> None:
    """Serve runs to clients of LibreTranslate and DeepL.

    The page of the first run, and of a second one for the same languages, is at /. If the
    environment variable SEQ2SEQ_KEY is set, clients must send its value as their key. Needs pip
    install 'seq2seq-attn[serve]'.
    """
    try:
        from seq2seq_attn.serve import App, group_runs, load_runs, make_server
    except ModuleNotFoundError as error:
        raise UserError(
            f"{error.name}: not installed; run: pip install 'seq2seq-attn[serve]'"
        ) from None
    from seq2seq_attn.data.processes import follow_parent
    from seq2seq_attn.run import open_runs

    groups = group_runs(open_runs(runs))
    modules = imports or []
    first_runs = {pair: served[0] for pair, served in groups.items()}
    page = [str(run.path) for run in next(iter(groups.values()))[:2]]
    page += [f"--import={name}" for name in modules]
    machine = {"device": device, "precision": precision}
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), follow_parent)
    with socket.create_server((host, port), family=family, backlog=2_048) as listener, pool:
        # else the body of an answer waits for 40 ms
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        batch_sizes = pool.submit(load_runs, first_runs, modules, machine).result()
        app = App(pool, batch_sizes, page, os.environ.get("SEQ2SEQ_KEY", ""), max_characters)
        served = ", ".join(f"{source} to {target}" for source, target in groups)
        port = listener.getsockname()[1]
        typer.echo(f"{served}: listening at {host}, port {port}", err=True)
        make_server(app).run([listener])
