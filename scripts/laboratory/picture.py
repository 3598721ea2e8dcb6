"""Draw README's picture: the attention of one sentence beside BLEU by sentence length.

The model of `scripts/demo`, which runs first, translates the sentence. The curves are those of the
record `demo` (`scripts/lab run demo`).
"""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from scripts.laboratory.demo import ATTENTION, SENTENCE
from scripts.laboratory.harness.records import RECORDS, ROOT, Record
from seq2seq_attn import load
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json
from seq2seq_attn.translate.attention_map import MAP_COLORS, AttentionMap
from seq2seq_attn.translate.figure import new_figure, save_figure

PICTURE = ROOT / "docs" / "plots" / "readme.png"
ARMS = (
    ("with attention", "#0a3c7a", "o", (0, -16)),
    ("with one fixed vector", "#d55e00", "s", (0, 10)),
)
"""label, color, marker, and where the label is, in points from the middle of the curve"""


def main(arguments: Sequence[str] = ()) -> None:
    """Draw it from the demo's run, or from the run that is named."""
    run = Path(arguments[0]) if arguments else ROOT / ATTENTION
    [translation] = load(run).translate([SENTENCE])
    attention = translation.attention_map()
    if attention is None:
        raise UserError(f"{run}: no attention to draw")
    figure = new_figure(11.0, 5.2)
    figure.set_layout_engine("constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.15))
    draw_attention(left, attention)
    draw_curves(right, read_json(RECORDS / "demo.json")["sets"][-1]["buckets"])
    save_figure(figure, PICTURE)


def draw_attention(axes: Axes, attention: AttentionMap) -> None:
    colors = LinearSegmentedColormap.from_list("attention", MAP_COLORS)
    axes.imshow(attention.weights_TS, cmap=colors, vmin=0.0, vmax=1.0, aspect="equal")
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(len(attention.source_tokens)), attention.source_tokens, rotation=90, fontsize=11
    )
    axes.set_yticks(range(len(attention.target_tokens)), attention.target_tokens, fontsize=11)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def draw_curves(axes: Axes, buckets: list[Record]) -> None:
    for i, (label, color, marker, offset) in enumerate(ARMS):
        scores = []
        for bucket in buckets:
            [bleu] = [measure for measure in bucket["measures"] if measure["name"] == "bleu"]
            scores.append(bleu["runs"][i])
        values = [score["score"] for score in scores]
        low = [score["low"] for score in scores]
        high = [score["high"] for score in scores]
        axes.fill_between(range(len(values)), low, high, color=color, alpha=0.18, linewidth=0)
        axes.plot(values, color=color, marker=marker, linewidth=2)
        middle = (len(values) // 2, values[len(values) // 2])
        axes.annotate(
            label, middle, offset, textcoords="offset points", color=color, fontsize=12, ha="left"
        )
    axes.set_xticks(
        range(len(buckets)), [bucket["label"].replace(" and more", "+") for bucket in buckets]
    )
    axes.set_xlabel("German tokens in the sentence", fontsize=11)
    axes.set_ylabel("BLEU (95 % bootstrap band)", fontsize=11)
    axes.set_ylim(0, 100)
    axes.grid(axis="y", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
