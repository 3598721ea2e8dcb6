"""docs/trouble.md quotes messages that the package writes."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "trouble.md").read_text(encoding="utf-8")
QUOTED = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def sources():
    files = (ROOT / "seq2seq_attn").rglob("*.py")
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize("message", QUOTED)
def test_a_quoted_message_is_in_the_sources(sources, message):
    assert message in sources


def test_the_page_has_twenty_messages():
    assert len({*QUOTED}) >= 20
