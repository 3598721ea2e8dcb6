"""Where the log of a training run goes: `metrics.jsonl`, TensorBoard events, `train.log`, and a progress bar."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont
from tqdm import tqdm

from seq2seq_attn.files import finite, naming
from seq2seq_attn.metrics.table import METRICS
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.train.validate import Sample
from seq2seq_attn.translate.attention_map import AttentionMap, map_colors

CURVES = {
    "train": ("loss", "nll", "gradient_norm", "learning_rate", "teacher_forcing_ratio", "tokens_per_s"),
    "validation": ("perplexity", *METRICS, "num_cut"),
}
"""the values of each event that go to TensorBoard"""
_CELL, _GAP, _MAX_LABEL = 18, 4, 160
"""pixels in a picture of attention: the side of a weight's square, the margin of labels, and their maximum width"""
_MAX_WEIGHTS = 4_000_000 // _CELL**2
"""in a picture, for at most about 4 megapixels: those of 500 x 500 weights take 7 GB and 100 s in TensorBoard"""

log = logging.getLogger(__name__)


class RunLog:
    """The log of one run, as a context manager. Each line of `metrics.jsonl` is a JSON object with `event` (`train`,
    `validation`, `bad_update`, `end`), `update`, the number of complete updates, and `epoch`, the number of complete
    epochs; in a `train` line, `epoch` is counted before the update. (The log and the bar show the current epoch, from
    1.) Numbers that are not finite are null.

    `position` is None for a new run. For a resumed run it is the length of `metrics.jsonl` in bytes that belongs to the
    saved state; later lines are removed, because their updates are made again.
    """

    def __init__(self, directory: Path, *, position: int | None = None, update: int = 0) -> None:
        from torch.utils.tensorboard import SummaryWriter  # slow to import

        self._run = RunDir(directory)
        path = self._run.metrics_path
        self._stream = path.open("wb" if position is None else "ab")
        if position is not None:
            kept = min(position, path.stat().st_size)  # beyond the end, `truncate` would add zeros
            self._stream.truncate(kept)
            self._stream.seek(kept)
        self._writer = SummaryWriter(str(directory), purge_step=None if position is None else update + 1)
        self._handler = _LogFile(self._run.log_path, mode="w" if position is None else "a", encoding="utf-8")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._package_log = logging.getLogger("seq2seq_attn")
        self._former_level = self._package_log.level

    def __enter__(self) -> RunLog:
        self._package_log.addHandler(self._handler)
        if self._package_log.getEffectiveLevel() > logging.INFO:
            self._package_log.setLevel(logging.INFO)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._package_log.removeHandler(self._handler)
        self._package_log.setLevel(self._former_level)
        # on a full disk, the error that led here matters
        with suppress(OSError) if error else naming(self._run.path), ExitStack() as closed:
            for opened in (self._writer, self._stream, self._handler):
                closed.callback(opened.close)
            if isinstance(error, Exception):
                # only to the file; the caller prints it to the terminal
                self._handler.handle(log.makeRecord(log.name, logging.ERROR, "", 0, "%s", (error,), None))

    def event(self, event: str, *, update: int, epoch: int, **values: Any) -> None:
        """Add a line. Numbers that form a curve also go to TensorBoard, as `event/name`."""
        line = {"event": event, "update": update, "epoch": epoch, **values}
        with naming(self._run.metrics_path):
            self._stream.write(json.dumps(finite(line), ensure_ascii=False).encode() + b"\n")
            self._stream.flush()
        with naming(self._run.path):
            curves = {name: values[name] for name in CURVES.get(event, ()) if name in values}
            curves |= {f"objectives/{name}": mean for name, mean in values.get("objectives", {}).items()}
            for name, value in curves.items():
                self._writer.add_scalar(f"{event}/{name}", value, update)

    def samples(self, samples: Sequence[Sample], *, update: int) -> None:
        """Show a few sentences in TensorBoard, with their attention as pictures."""
        for number, sample in enumerate(samples, 1):
            texts = {"source": sample.source, "reference": sample.reference, "hypothesis": sample.hypothesis}
            # indented by four spaces, so that Markdown takes sentences as code
            shown = "\n".join(f"    {name:10}  {text}" for name, text in texts.items())
            with naming(self._run.path):
                self._writer.add_text(f"sample {number}", shown, update)
                if sample.attention is not None and sample.attention.weights_TS.size <= _MAX_WEIGHTS:
                    picture = _draw_attention(sample.attention)
                    self._writer.add_image(f"attention/sample {number}", picture, update, dataformats="HWC")

    def position(self) -> int:
        """The length of `metrics.jsonl` in bytes, after syncing it to disk."""
        with naming(self._run.metrics_path):
            self._stream.flush()
            os.fsync(self._stream.fileno())
        return self._stream.tell()


class _LogFile(logging.FileHandler):
    """A log file that ends training with one line if it cannot be written, instead of a traceback per record."""

    def handleError(self, record: logging.LogRecord) -> None:
        with naming(Path(self.baseFilename)):
            raise


class Progress:
    """The progress bar on stderr, if that is a terminal: epoch, updates, loss, tokens per second, time left."""

    def __init__(self, *, update: int, total_updates: int | None, end_s: float | None, is_shown: bool = True) -> None:
        """`end_s`: seconds from now until a time limit ends training; None without a limit."""
        self._bar: tqdm[Any] = tqdm(
            total=total_updates,
            initial=update,
            unit=" updates",
            dynamic_ncols=True,
            file=sys.stderr,
            disable=not (is_shown and sys.stderr.isatty()),
            bar_format="{desc} {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} updates{postfix}"
            if total_updates
            else None,
        )
        self._started_at, self._first_update = time.monotonic(), update
        self._total_updates, self._end_s = total_updates, end_s

    @property
    def is_shown(self) -> bool:
        """Whether there is a bar."""
        return not self._bar.disable

    def step(self, *, update: int, epoch: int, loss: float, tokens_per_s: float) -> None:
        """Move the bar to an update."""
        if not self.is_shown:
            return
        self._bar.set_description_str(f"epoch {epoch + 1}", refresh=False)
        left = f" left={tqdm.format_interval(self._left_s(update))}" if self._total_updates or self._end_s else ""
        self._bar.set_postfix_str(f"loss={loss:.3f} tokens/s={tokens_per_s:,.0f}{left}", refresh=False)
        self._bar.update(update - self._bar.n)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()

    def _left_s(self, update: int) -> float:
        spent_s = time.monotonic() - self._started_at
        left = []
        if self._total_updates:
            left.append(spent_s / max(1, update - self._first_update) * max(0, self._total_updates - update))
        if self._end_s is not None:
            left.append(max(0.0, self._end_s - spent_s))
        return min(left)


def _draw_attention(attention: AttentionMap) -> npt.NDArray[np.uint8]:
    """[height, width, 3]: a row per target token, a column per source token, with labels. It takes milliseconds; with
    matplotlib, a picture takes longer than a small validation."""
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
    from matplotlib import get_data_path  # slow to import

    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", 12)
