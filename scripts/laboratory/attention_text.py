"""The attention of one sentence in the terminal: a row for each target token, a column for each source token.

The darker a cell, the larger the weight; a row ends with the source token that it looks at most. Source tokens stand
over their columns, letter under letter; a sentence that is too wide continues in a block below.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from seq2seq_attn.report.tables import display_width, pad
from seq2seq_attn.translate.attention_map import MAP_NOTE, AttentionMap

_SHADES = " ░▒▓█"
_STEPS = (0.05, 0.2, 0.4, 0.7)  # the smallest weight of each shade after the first
_MAX_LABEL = 14
_MIN_WIDTH = 40


@dataclass(frozen=True)
class _Layout:
    label_width: int
    cell_width: int
    num_columns: int
    shows_winner: bool


def attention_text(attention: AttentionMap, *, width: int = 80) -> str:
    """The picture as text, no line wider than `width` columns (or 40, whichever is more)."""
    targets = [_shorten(token) for token in attention.target_tokens]
    sources = [_shorten(token) for token in attention.source_tokens]
    layout = _choose_layout(targets, sources, max(width, _MIN_WIDTH))
    starts = range(0, len(sources), layout.num_columns)
    blocks = [_block(attention, targets, sources, start, layout) for start in starts]
    legend = "  ".join(f"{shade} {step:g}+" for shade, step in zip(_SHADES[1:], _STEPS, strict=True))
    note = textwrap.fill(MAP_NOTE, max(width, _MIN_WIDTH))
    return "\n\n".join([*blocks, f"weight: {legend}\n{note}"])


def _choose_layout(targets: list[str], sources: list[str], width: int) -> _Layout:
    label_width = max(map(display_width, targets), default=0)
    winner_width = 2 + max(map(display_width, sources), default=0)
    room = width - label_width - 2
    narrowest = max((display_width(char) for token in sources for char in token), default=1)
    # First two terminal columns to a source token, then one; first with the words beside the picture, then without.
    for cell_width, shows_winner in ((2, True), (narrowest, True), (narrowest, False)):
        if cell_width * len(sources) + winner_width * shows_winner <= room:
            return _Layout(label_width, cell_width, max(1, len(sources)), shows_winner)
    return _Layout(label_width, narrowest, max(1, (room - winner_width) // narrowest), True)


def _block(attention: AttentionMap, targets: list[str], sources: list[str], start: int, layout: _Layout) -> str:
    end = start + layout.num_columns
    indent = " " * (layout.label_width + 2)
    lines = [f"{indent}{line}".rstrip() for line in _column_labels(sources[start:end], layout.cell_width)]
    for target, weights_S in zip(targets, attention.weights_TS, strict=True):
        cells = "".join(_shade(float(weight)) * layout.cell_width for weight in weights_S[start:end])
        best = int(weights_S.argmax())
        winner = f"  {sources[best]}" if layout.shows_winner and start <= best < end else ""
        lines.append(f"{pad(target, layout.label_width, right=True)}  {cells}{winner}".rstrip())
    return "\n".join(lines)


def _column_labels(tokens: list[str], cell_width: int) -> list[str]:
    """The tokens written downwards, all ending on the last line."""
    height = max(map(len, tokens), default=0)
    columns = [" " * (height - len(token)) + token for token in tokens]
    return ["".join(pad(column[row], cell_width) for column in columns) for row in range(height)]


def _shade(weight: float) -> str:
    return _SHADES[sum(weight >= step for step in _STEPS)]


def _shorten(token: str) -> str:
    """The token on one line and not too long."""
    visible = "".join(char if char.isprintable() else "�" for char in token) or "�"
    if display_width(visible) <= _MAX_LABEL:
        return visible
    visible = visible[: _MAX_LABEL - 1]
    while display_width(visible) > _MAX_LABEL - 1:
        visible = visible[:-1]
    return visible + "…"
