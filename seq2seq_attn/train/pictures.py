"""Draw attention for TensorBoard in milliseconds. With matplotlib, a picture takes longer than a small validation."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont

from seq2seq_attn.translate.attention_map import AttentionMap
from seq2seq_attn.translate.snippet import map_colors

_CELL, _GAP, _MAX_LABEL = 18, 4, 160


def draw_attention(attention: AttentionMap) -> npt.NDArray[np.uint8]:
    """[height, width, 3]: a row per target token, a column per source token, with labels."""
    left, top = _margin(attention.target_tokens), _margin(attention.source_tokens)
    cells = map_colors(attention.weights_TS).repeat(_CELL, axis=0).repeat(_CELL, axis=1)
    picture = np.full((top + cells.shape[0], left + cells.shape[1], 3), 255, dtype=np.uint8)
    picture[top:, left:] = cells
    # source labels are drawn as rows, then rotated
    picture[:top, left:] = np.rot90(_labels(attention.source_tokens, width=top, anchor_right=False))
    picture[top:, :left] = _labels(attention.target_tokens, width=left, anchor_right=True)
    return picture


def _labels(tokens: list[str], *, width: int, anchor_right: bool) -> npt.NDArray[np.uint8]:
    """[cells, width, 3]: a line per token, aligned right or left."""
    image = Image.new("RGB", (width, _CELL * len(tokens)), "white")
    draw = ImageDraw.Draw(image)
    for number, token in enumerate(tokens):
        x = width - _GAP - min(_MAX_LABEL, draw.textlength(token, font=_font())) if anchor_right else _GAP
        draw.text((x, (number + 0.5) * _CELL), token, fill="black", font=_font(), anchor="lm")
    return np.asarray(image)


def _margin(tokens: list[str]) -> int:
    longest = max((_font().getlength(token) for token in tokens), default=0.0)
    return int(min(_MAX_LABEL, longest)) + 2 * _GAP


@cache
def _font() -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", 12)
