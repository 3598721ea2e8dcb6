"""`seq2seq serve`."""

import os
from pathlib import Path
from typing import Annotated

from seq2seq_attn.cli import options as shared
from seq2seq_attn.runtime.extras import require

AllowHost = Annotated[
    list[str] | None,
    shared.option(
        "NAME",
        "Name of this machine that clients use, besides localhost; may be repeated.",
        default="addresses only",
    ),
]
AllowOrigin = Annotated[
    list[str] | None,
    shared.option(
        "ORIGIN",
        "Origin of pages that may use the server, such as https://example.org; *: every one. "
        "May be repeated.",
        default="none",
    ),
]


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
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    imports: list[str] | None = None,
    device: shared.Device = "auto",
    precision: shared.TranslationPrecision = "auto",
) -> None:
    """Serve runs to clients of LibreTranslate and DeepL.

    The address / is a page that translates with the first run and draws its attention, and does the
    same with the second run if both translate the same languages. If the environment variable
    SEQ2SEQ_KEY is set, clients must send its value as their key. The server needs pip install
    'seq2seq-attn[serve]'.
    """
    require("serve", "starlette", "uvicorn", "python_multipart", "sacrebleu")
    from seq2seq_attn.run import open_runs
    from seq2seq_attn.serve import serve_runs
    from seq2seq_attn.serve.requests import Access

    serve_runs(
        open_runs(runs),
        host=host,
        port=port,
        access=Access(
            os.environ.get("SEQ2SEQ_KEY", ""), max_characters, allow_host or [], allow_origin or []
        ),
        imports=imports or [],
        machine={"device": device, "precision": precision},
    )
