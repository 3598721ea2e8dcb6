"""Make and save matplotlib figures without pyplot, which would need global state and a display."""

from __future__ import annotations

import logging
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, get_args

from seq2seq_attn.files import atomic_path
from seq2seq_attn.runtime.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

PlotFormat = Literal["png", "svg", "pdf"]
PLOT_SUFFIXES = tuple(f".{name}" for name in get_args(PlotFormat))
_DPI = 150
_MAX_PIXELS = 9_000
"""maximum width and height of a figure; larger figures get fewer pixels per inch"""


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure of `width` by `height` inches."""
    require("plots", "matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=_DPI)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure to a file, in the format that the suffix of `path` names."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        write_figure(figure, file, path)


def write_figure(figure: Figure, file: BinaryIO, path: Path) -> None:
    """Write the figure to an open file, in the format that the suffix of `path` names.

    An SVG file holds text as text, which is drawn with the fonts of the reader's machine. In other
    formats, letters that the fonts of `font.family` lack are boxes, with a warning.
    """
    import matplotlib

    width, height = figure.get_size_inches()
    format = path.suffix[1:].lower()
    dpi = min(_DPI, _MAX_PIXELS / max(width, height))
    with warnings.catch_warnings(record=True, action="always") as caught:
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            figure.savefig(file, format=format, dpi=dpi)
    matches = [re.match(r"Glyph (\d+) ", str(warning.message)) for warning in caught]
    missing = "".join(dict.fromkeys(chr(int(match[1])) for match in matches if match))
    if missing and format != "svg":
        log.warning(
            "%s: boxes for %s, which the font lacks; choose .svg or .html, or set font.family in "
            "matplotlibrc",
            path,
            missing[:8],
        )
