"""One picture per mechanism: the attention of its run while it translates the same sentence."""

from __future__ import annotations

from PIL import Image

from scripts.laboratory.demo import SENTENCE
from scripts.mechanism_bench.runs import Training
from seq2seq_attn.translate.heat_maps import plot_attention
from seq2seq_attn.translate.translator import load

NUM_COLORS = 255
"""a palette instead of true color takes a third of the bytes"""


def draw(training: Training) -> None:
    """Draw the run's attention on `SENTENCE`; nothing if it does not look at source positions."""
    [found] = load(training.run.path, "cpu").translate([SENTENCE])
    attention = found.attention_map()
    if attention is None:
        return
    path = training.row.picture_path
    path.parent.mkdir(parents=True, exist_ok=True)
    plot_attention(path, [attention])
    Image.open(path).convert("RGB").quantize(NUM_COLORS).save(path, optimize=True)
