"""Fill a self-contained HTML page that needs no network.

Texts and numbers are JSON inside the page, and scripts show them as text nodes only. So a sentence
that looks like markup stays a sentence. The content security policy allows the page's style and
script by their hashes, and the browser refuses all other styles and scripts.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seq2seq_attn.files import finite

_TEMPLATE = Path(__file__).parent / "web" / "page.html"


def fill_page(
    folder: Path,
    title: str,
    styles: Sequence[str | Path],
    scripts: Sequence[str | Path],
    payload: Mapping[str, Any],
    *,
    script_sources: str = "",
) -> str:
    """Return the HTML of a page with styles, scripts and values.

    The content security policy of the page allows these styles and scripts, and the sources in
    `script_sources`. The scripts are joined into the body of a function, so that the names which
    the scripts define are not global.

    Args:
        folder: The folder of style sheets and scripts.
        title: The title of the page, as plain text.
        styles: Names of style sheets in the folder, or absolute paths.
        scripts: Names of scripts in the folder, or absolute paths.
        payload: The values that the scripts show.
        script_sources: Further sources that the content security policy allows for scripts. Each
            source begins with a space, for example " 'wasm-unsafe-eval'".
    """
    style = _join_files(folder, styles)
    script = f"'use strict';\n(() => {{\n{_join_files(folder, scripts)}}})();\n"
    values = {
        "@STYLE_HASH@": _hash(style),
        "@SCRIPT_HASH@": _hash(script),
        "@SCRIPT_SOURCES@": script_sources,
        "@TITLE@": html.escape(_replace_surrogates(title)),
        "@STYLE@": style,
        "@SCRIPT@": script,
        "@DATA@": embedded_json(payload),
    }
    template = _TEMPLATE.read_text(encoding="utf-8")
    return re.sub("@[A-Z_]+@", lambda mark: values[mark[0]], template)


def embedded_json(value: Any) -> str:
    """Return JSON that is safe inside a <script> element, whatever its strings contain.

    Infinite numbers and NaN become null.
    """
    text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return _replace_surrogates(text)


def _join_files(folder: Path, names: Sequence[str | Path]) -> str:
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by question marks."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _hash(text: str) -> str:
    """Return the hash by which a content security policy allows an inline element."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
