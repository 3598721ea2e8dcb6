"""The pictures at the top of the pages, drawn from records with matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from scripts.laboratory.pages import quality, results
from scripts.laboratory.pages.bottleneck import BASELINE
from scripts.laboratory.pages.mechanisms import BASELINE as BASELINE_ROW
from scripts.laboratory.pages.mechanisms import mechanisms
from scripts.laboratory.pages.render import BOTTLENECK, DOCS, LEVERS, RECORDS, SPEED, Record, load_records, p_value, wilson
from seq2seq_attn.files import sha256_of, sha256_of_values

PLOTS = DOCS / "plots"
BLUE, ORANGE, GRAY, PALE = "#0a5ea8", "#d55e00", "#5c6670", "#b9c4ce"
GREENS = ("#9ccb9c", "#77b57c", "#519b5f", "#2d7f46", "#0d5c2f")
DPI = 120
NUM_COLORS = 255
"""a palette instead of true color takes a third of the bytes"""
Plot = Callable[[Figure, Any], None]


class Picture(NamedTuple):
    """A file of docs/, and what it shows."""

    path: Path
    plot: Plot
    data: Any
    size: tuple[float, float] = (8.0, 4.6)

    @property
    def digest(self) -> str:
        """Of the data and of this module; the file holds the one that it was drawn from."""
        return sha256_of_values([self.data, self.size, sha256_of(Path(__file__))])

    @property
    def is_current(self) -> bool:
        """Whether the file shows the data."""
        if not self.path.exists():
            return False
        with Image.open(self.path) as image:
            return image.info.get("digest") == self.digest

    def draw(self) -> None:
        """Write the file."""
        figure = Figure(figsize=self.size, layout="constrained")
        self.plot(figure, self.data)
        buffer, information = io.BytesIO(), PngInfo()
        figure.savefig(buffer, dpi=DPI)
        information.add_text("digest", self.digest)
        image = Image.open(buffer).convert("RGB").quantize(NUM_COLORS)
        image.save(self.path, optimize=True, pnginfo=information)


def pictures() -> Iterator[Picture]:
    """All of them."""
    levers, speed, bottleneck = load_records(LEVERS), load_records(SPEED), load_records(BOTTLENECK)
    yield Picture(PLOTS / "results.png", plot_bars, results_bars(results.evaluations()), (8.0, 3.4))
    yield Picture(PLOTS / "quality.png", plot_bars, ablation_bars(levers), (8.0, 3.2))
    yield Picture(PLOTS / "mechanisms.png", plot_dots, mechanism_dots(), (8.0, 11.5))
    yield Picture(PLOTS / "speed.png", plot_bars, speed_bars(speed), (8.0, 5.0))
    typos = load_records(RECORDS)["typos"]
    yield Picture(PLOTS / "typos.png", plot_bars, typo_bars(typos), (8.0, 3.8))
    for name in ("joined", "single", "multi30k"):
        record = bottleneck[name]
        yield Picture(BOTTLENECK / f"{name}.png", plot_lines, bleu_lines(record, name))
        if "vectors" in record:
            yield Picture(BOTTLENECK / f"{name}-vectors.png", plot_vectors, record["vectors"], (6.0, 4.4))


def results_bars(records: Mapping[str, Record]) -> Record:
    """BLEU of each configuration that translates Multi30k from German to English, without regard to case."""
    bars = []
    for config, found in results.configurations(records).items():
        if found.test["name"] == "test_2016_flickr" and found.record.get("languages", ["de", "en"]) == ["de", "en"]:
            scores = next(one for one in found.test["measures"] if one["name"] == "bleu_lowercase")["runs"]
            mean = fmean(scores[number]["score"] for number in found.numbers)
            label = {"tutorial": "tutorial, attention", "tutorial+fixed": "tutorial, one fixed vector"}.get(
                config, config
            )
            bars.append({"label": label, "value": mean, "color": BLUE if label == config else PALE})
    bars = [{**bar, "text": f"{bar['value']:.1f}"} for bar in sorted(bars, key=lambda bar: bar["value"])]
    title = "BLEU on Multi30k, German to English (test_2016_flickr, without regard to case)"
    return {"title": title, "groups": [{"label": bar["label"], "bars": [bar]} for bar in bars]}


def ablation_bars(levers: Mapping[str, Record]) -> Record:
    """The gain of each technique."""
    groups = []
    for one in quality.techniques(levers):
        text = f"{one['gain']:+.2f}  (p {p_value(one['p_value'])}{'' if one['is_current'] else ', former recipe'})"
        groups.append({"label": one["name"], "bars": [{"value": one["gain"], "text": text, "color": BLUE}]})
    return {"title": "BLEU that each technique adds to multi30k-fast (Multi30k, validation set)", "groups": groups}


def speed_bars(records: Mapping[str, Record]) -> Record:
    """Our speed relative to other toolkits on one core."""
    train = {row["name"]: row["ratios"]["tutorial, bucketed batches"] for row in records["train"]["rows"]}
    tutorial = [train[f"ours, fast, {precision}"] for precision in ("fp32", "bf16")]
    rows = [("training, the tutorial's loop\n(bucketed batches)", tutorial)]
    for what, title in (("training", "training"), ("decoding, beam 5, 14 steps forced", "translating, beam 5")):
        ours = {
            row["contestant"]: row["ratios"]
            for row in reversed(records["peers"]["rows"])
            if row["what"] == what and row["contestant"].startswith("ours")
        }
        for name in ours["ours, fp32"]:
            rows.append(
                (
                    f"{title},\n{name.replace('joeynmt', 'JoeyNMT')}",
                    [ours[f"ours, {precision}"][name] for precision in ("fp32", "bf16")],
                )
            )
    groups = [
        {
            "label": label,
            "bars": [
                {"value": value, "text": f"{value:.1f} ×  {precision}", "color": color}
                for value, precision, color in zip(values, ("in fp32", "in bf16"), (PALE, BLUE), strict=True)
            ],
        }
        for label, values in rows
    ]
    return {
        "title": "Our speed on one core; dashed line: the speed of the others, in fp32",
        "groups": groups,
        "line": 1.0,
    }


def typo_bars(record: Record) -> Record:
    """Shares of right answers, and of attention on the typo, for known and new words."""
    titles = {
        "found": "finder names the typo",
        "corrected": "corrector writes the word",
        "attended": "attention is on the typo",
    }
    groups = []
    for key, title in titles.items():
        bars = []
        for test, color in (("known", BLUE), ("new", PALE)):
            row = record["tests"][test]["words"]["5 letters and more"]
            share = wilson(row[key], row["n"])[0]
            bars.append({"value": share, "text": f"{share:.0f} %  {test} words", "color": color})
        groups.append({"label": title, "bars": bars})
    return {"title": "Right answers on words of five letters and more", "groups": groups}


def mechanism_dots() -> Record:
    """BLEU on captions of every mechanism, by axis."""
    groups: dict[str, list[Record]] = {}
    rows = mechanisms()
    for row in rows.values():
        if row["bleu"]:
            value = {"label": row["name"].split("/")[1], "bleu": row["bleu"]}
            groups.setdefault(row["axis"], []).append(value)
    return {"groups": groups, "baseline": rows[BASELINE_ROW]["score"]["captions"]}


def bleu_lines(record: Record, name: str) -> Record:
    """BLEU of attention, of pooled vectors and of the fixed vector by length."""
    titles = {
        "joined": "BLEU by number of joined captions, trained on one to six",
        "single": "BLEU by number of joined captions, trained on single ones",
        "multi30k": "BLEU by length of the German sentence, Multi30k",
    }
    names = [arm["name"] for arm in record["arms"]]
    slots = [arm for arm in names if arm.startswith("slots-") and arm != "slots-1"]
    shown = {BASELINE: ("attention", BLUE)}
    shown |= {arm: (f"{arm.removeprefix('slots-')} vectors", GREENS[1 + i]) for i, arm in enumerate(slots)}
    shown["fixed"] = ("one fixed vector", ORANGE)
    lines = []
    for arm, (label, color) in shown.items():
        scores = [point["scores"][arm]["bleu"] for point in record["points"]]
        values = {key: [one[key] for one in scores] for key in ("mean", "low", "high")}
        lines.append({"label": label, "color": color, "is_main": not arm.startswith("slots"), **values})
    x_label = "German words and punctuation marks" if name == "multi30k" else "captions joined into one input"
    ticks = [str(point["label"]) for point in record["points"]]
    return {"title": titles[name], "lines": lines, "ticks": ticks, "x_label": x_label}


def plot_bars(figure: Figure, data: Record) -> None:
    """Groups of horizontal bars, the first at the top, with their values beside them."""
    axes = figure.subplots()
    y, ticks = 0.0, []
    for group in data["groups"]:
        heights = [y - 0.8 * number for number in range(len(group["bars"]))]
        for height, bar in zip(heights, group["bars"], strict=True):
            axes.barh(height, bar["value"], height=0.72, color=bar["color"])
            axes.annotate(
                bar["text"], (max(bar["value"], 0.0), height), (5, 0), textcoords="offset points", va="center"
            )
        ticks.append((fmean(heights), group["label"]))
        y = heights[-1] - 1.15
    axes.set_yticks([height for height, _ in ticks], [label for _, label in ticks], fontsize=11)
    if "line" in data:
        axes.axvline(data["line"], color=GRAY, linewidth=1, linestyle=(0, (4, 3)))
    axes.margins(x=0.22)
    axes.set_xlim(left=min(0.0, axes.dataLim.x0))
    axes.xaxis.set_visible(False)
    _plain(axes, data["title"], "bottom")


def plot_dots(figure: Figure, data: Record) -> None:
    """A dot per row with its deviation; those far below the others are written at the left edge."""
    axes, left = figure.subplots(), 75.0
    y, ticks = 0.0, []
    for axis, rows in data["groups"].items():
        axes.annotate(axis, (0.0, y), (-4, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                      ha="right", va="center", fontweight="bold", fontsize=11)  # fmt: skip
        for row in sorted(rows, key=lambda one: -fmean(one["bleu"])):
            y -= 1
            mean = fmean(row["bleu"])
            ticks.append((y, row["label"]))
            if mean < left:
                axes.annotate(f"◂ {mean:.1f}", (left, y), va="center", fontsize=9.5, color=ORANGE)
                continue
            axes.plot([min(row["bleu"]), max(row["bleu"])], [y, y], color=PALE, linewidth=3, zorder=1)
            axes.plot(mean, y, "o", color=BLUE, markersize=6)
            axes.annotate(f"{mean:.1f}", (max(row["bleu"]), y), (6, 0), textcoords="offset points",
                          va="center", fontsize=9.5, color=GRAY,
                          bbox={"color": "white", "pad": 0.8})  # fmt: skip
        y -= 1.4
    axes.axvline(data["baseline"], color=GRAY, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    axes.set_yticks([height for height, _ in ticks], [label for _, label in ticks], fontsize=9.5)
    axes.set_xlim(left, 100)
    axes.set_ylim(y + 0.6, 1.0)
    axes.set_xlabel("BLEU on captions: mean (dot) and range of the seeds; dashed: the baseline, additive attention")
    _plain(axes, "BLEU of every mechanism, all else equal", "")


def plot_lines(figure: Figure, data: Record) -> None:
    """Lines with their names at the right end."""
    axes, lines = figure.subplots(), data["lines"]
    x = range(len(data["ticks"]))
    for line in lines:
        axes.plot(x, line["mean"], color=line["color"], linewidth=3 if line["is_main"] else 1.8, marker="o")
        axes.fill_between(x, line["low"], line["high"], color=line["color"], alpha=0.15, linewidth=0)
    top = max(max(line["high"]) for line in lines)
    height = -0.02 * top
    for line in sorted(lines, key=lambda one: sum(one["mean"])):
        height = max(line["mean"][-1], height + 0.06 * top)  # labels do not overlap
        text = f"{line['label']}: {line['mean'][-1]:.0f}"
        axes.annotate(text, (x[-1], height), (12, 0), textcoords="offset points", va="center", color=line["color"],
                      fontsize=12, fontweight="bold" if line["is_main"] else "normal")  # fmt: skip
    axes.set_xticks(list(x), data["ticks"], fontsize=11)
    axes.set_xlim(-0.2, x[-1] + 1.7)
    axes.set_ylim(0, 1.05 * top)
    axes.set_xlabel(data["x_label"], fontsize=11)
    axes.grid(axis="y", alpha=0.25)
    _plain(axes, data["title"], "")


def plot_vectors(figure: Figure, data: Record) -> None:
    """The two principal components of sentence vectors, colored by length."""
    axes = figure.subplots()
    x, y = zip(*data["points"], strict=True)
    dots = axes.scatter(x, y, c=data["lengths"], cmap="viridis", s=9)
    figure.colorbar(dots, label="source tokens")
    first, second = (
        f"principal component {number} ({100 * share:.0f} % of the variance)"
        for number, share in enumerate(data["shares"], 1)
    )
    axes.set(xlabel=first, ylabel=second)
    _plain(axes, "The fixed vectors of one to six captions", "")


def _plain(axes: Axes, title: str, hidden: str) -> None:
    """Title at the left, no frame."""
    axes.figure.suptitle(title, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    axes.spines[["top", "right", *([hidden] if hidden else [])]].set_visible(False)
    axes.tick_params(length=0)
