"""Figures by matplotlib's objects (no pyplot: no global state, no display), saved as PNG, SVG or PDF."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from seq2seq_attn.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLOT_SUFFIXES = (".png", ".svg", ".pdf")
_DPI = 150
_MAX_PIXELS = 9_000
"""of a side; larger figures get fewer pixels per inch"""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that many inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=_DPI)
    FigureCanvasAgg(figure)
    return figure


@contextmanager
def any_script() -> Iterator[None]:
    """Draw a token in a script that the font lacks as boxes: no reason to stop or to fill stderr."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure in the format that the file's name ends in."""
    width, height = figure.get_size_inches()
    with atomic_path(path) as temporary, any_script():
        figure.savefig(temporary, format=path.suffix[1:].lower(), dpi=min(_DPI, _MAX_PIXELS / max(width, height)))
