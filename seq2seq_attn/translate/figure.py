"""Make and save matplotlib figures without pyplot, which would need global state and a display."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
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


@contextmanager
def any_script(figure: Figure) -> Iterator[str]:
    """Give all texts of the figure installed fonts that have glyphs for their characters.

    Yields the characters that no installed font has. They are drawn as boxes, and matplotlib's
    warnings of missing glyphs are ignored.
    """
    from matplotlib.text import Text

    texts: list[Text] = figure.findobj(Text)
    families, missing = _find_fonts(frozenset("".join(text.get_text() for text in texts)))
    for text in texts:
        text.set_fontfamily(families)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        yield missing


@lru_cache
def _find_fonts(characters: frozenset[str]) -> tuple[list[str], str]:
    """Return the fonts that together have a glyph for each character, the default font first.

    The second value holds the characters that no installed font has.
    """
    from matplotlib.font_manager import FontProperties, findfont, fontManager
    from matplotlib.ft2font import FT2Font

    families = ["sans-serif"]
    missing = {ord(character) for character in characters if character.isprintable()}
    missing -= FT2Font(findfont(FontProperties(family=families))).get_charmap().keys()
    for font in fontManager.ttflist:
        if not missing:
            break
        # The font of last resort draws a box for every character.
        if font.style != "normal" or font.name.startswith("Last Resort"):
            continue
        known = FT2Font(font.fname).get_charmap().keys()
        if missing & known:
            families.append(font.name)
            missing -= known
    return families, "".join(map(chr, sorted(missing)))


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure to a file, in the format that the suffix of `path` names."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        write_figure(figure, file, path)


def write_figure(figure: Figure, file: BinaryIO, path: Path) -> None:
    """Write the figure to an open file, in the format that the suffix of `path` names.

    An SVG file holds text as text, which is drawn with the fonts of the reader's machine.
    """
    import matplotlib

    width, height = figure.get_size_inches()
    format = path.suffix[1:].lower()
    with any_script(figure) as missing, matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format=format, dpi=min(_DPI, _MAX_PIXELS / max(width, height)))
    if missing and format != "svg":
        warning = (
            "%s: boxes for %s, which no installed font has; install one, or choose .svg or .html"
        )
        log.warning(warning, path, missing[:8])
