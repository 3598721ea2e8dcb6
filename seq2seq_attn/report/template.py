"""Fill a self-contained page, without network access.

Texts and numbers travel as JSON inside the page and reach the screen as text nodes only, so that a
sentence that looks like markup stays a sentence. The page's own style and script are allowed by
their hashes; the browser refuses everything else.
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


def fill_page(
    folder: Path,
    title: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    payload: Mapping[str, Any],
) -> str:
    """Fill a folder's `page.html` with some of its style sheets and scripts, which the page's
    content security policy allows alone. The scripts share one scope, out of reach of anything
    else."""
    style = _join_files(folder, styles)
    script = f"'use strict';\n(() => {{\n{_join_files(folder, scripts)}}})();\n"
    values = {
        "@STYLE_HASH@": _hash(style),
        "@SCRIPT_HASH@": _hash(script),
        "@TITLE@": html.escape(_replace_surrogates(title)),
        "@STYLE@": style,
        "@SCRIPT@": script,
        "@DATA@": embedded_json(payload),
    }
    template = (folder / "page.html").read_text(encoding="utf-8")
    return re.sub("@[A-Z_]+@", lambda mark: values[mark[0]], template)


def embedded_json(value: Any) -> str:
    """JSON that can stand inside a <script> element whatever its strings hold; infinite and missing
    numbers as null."""
    text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return _replace_surrogates(text)


def _join_files(folder: Path, names: Sequence[str]) -> str:
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def _replace_surrogates(text: str) -> str:
    """Half characters, which UTF-8 cannot encode, become question marks."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _hash(text: str) -> str:
    """As a content security policy names an inline element."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")
