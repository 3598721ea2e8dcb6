"""Draw README's picture: the attention of one sentence beside BLEU by sentence length.

The model of `scripts/demo`, which runs first, translates the sentence. The curves are those of the
record `demo` (`scripts/lab run demo`).
"""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from scripts.laboratory.demo import ATTENTION, SENTENCE
from scripts.laboratory.harness.records import RECORDS, ROOT, Record
from scripts.laboratory.pages.pictures import BLUE, ORANGE, plot_lines
from seq2seq_attn import load
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import read_json
from seq2seq_attn.translate.attention_map import MAP_COLORS, AttentionMap
from seq2seq_attn.translate.figure import new_figure, save_figure

PICTURE = ROOT / "docs" / "plots" / "readme.png"
ARMS = {"attention": BLUE, "one fixed vector": ORANGE}


def main(arguments: Sequence[str] = ()) -> None:
    """Draw it from the demo's run."""
    run = ROOT / ATTENTION
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


def draw_curves(axes: Axes, buckets: Sequence[Record]) -> None:
    """BLEU of both models by length, with its 95 % bootstrap band."""
    lines = []
    for i, (label, color) in enumerate(ARMS.items()):
        scores = []
        for bucket in buckets:
            [bleu] = [measure for measure in bucket["measures"] if measure["name"] == "bleu"]
            scores.append({"mean": bleu["runs"][i]["score"], **bleu["runs"][i]})
        values = {key: [score[key] for score in scores] for key in ("mean", "low", "high")}
        lines.append({"label": label, "color": color, "width": 3.0, **values})
    ticks = [bucket["label"].replace(" and more", "+") for bucket in buckets]
    x_label = "German tokens in the sentence; BLEU with its 95 % bootstrap band"
    plot_lines(axes, {"lines": lines, "ticks": ticks, "x_label": x_label})
    axes.spines[["top", "right"]].set_visible(False)
