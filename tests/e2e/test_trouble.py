"""docs/trouble.md quotes messages that the package writes."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "trouble.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)


def texts(tree):
    """The strings of a module, joined as Python joins them; a value in an f-string is `{}`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield "".join(parts)


@pytest.fixture(scope="module")
def messages():
    files = (ROOT / "seq2seq_attn").rglob("*.py")
    return "\n".join(
        text for file in files for text in texts(ast.parse(file.read_text(encoding="utf-8")))
    )


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_in_the_sources(messages, message):
    assert message in messages


def test_the_page_has_twenty_messages():
    assert len({*QUOTED}) >= 20
