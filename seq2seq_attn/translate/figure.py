"""Make and save matplotlib figures without pyplot, which would need global state and a display."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, get_args

from seq2seq_attn.files import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PlotFormat = Literal["png", "svg", "pdf"]
PLOT_SUFFIXES = tuple(f".{name}" for name in get_args(PlotFormat))
_DPI = 150
_MAX_PIXELS = 9_000
"""per side; larger figures get fewer pixels per inch"""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=_DPI)
    FigureCanvasAgg(figure)
    return figure


@contextmanager
def any_script() -> Iterator[None]:
    """Suppress warnings about scripts that the font lacks; they are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure in the format of the file's suffix."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        write_figure(figure, file, path.suffix)


def write_figure(figure: Figure, file: BinaryIO, suffix: str) -> None:
    """Write the figure to an open file, in the format of a suffix such as `.png`."""
    width, height = figure.get_size_inches()
    with any_script():
        figure.savefig(file, format=suffix[1:].lower(), dpi=min(_DPI, _MAX_PIXELS / max(width, height)))
