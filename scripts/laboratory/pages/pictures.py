"""The pictures at the top of the pages, drawn from records with matplotlib."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import getsource
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from scripts.laboratory.harness.records import SPEED, Record, load_records
from scripts.laboratory.pages import mechanisms, quality, race, results
from scripts.laboratory.pages.render import BOTTLENECK, DOCS, p_value
from seq2seq_attn.files import sha256_of_values

PLOTS = DOCS / "plots"
BLUE, ORANGE, GRAY, PALE = "#0a5ea8", "#d55e00", "#5c6670", "#b9c4ce"
RACE_COLORS = {
    "ours, multi30k-fast": BLUE,
    "ours, multi30k": "#0b2f52",
    "ours, multi30k-fast in fp32": "#6db3e8",
    "ours, tutorial": "#b3c9da",
    "JoeyNMT, RNN": ORANGE,
    "JoeyNMT, Transformer": "#a0522d",
    "OpenNMT-py, RNN": "#2d7f46",
    "the tutorial's loop": GRAY,
}
GREENS = ("#77b57c", "#519b5f", "#2d7f46", "#0d5c2f")
DASHED: Any = {"color": GRAY, "linewidth": 1, "linestyle": (0, (4, 3)), "zorder": 0}
BESIDE: Any = {"textcoords": "offset points", "va": "center"}
DPI = 120
NUM_COLORS = 255
"""a palette instead of true color takes a third of the bytes"""
Groups = list[tuple[str, list[tuple[float, str, str]]]]
"""of bars: a label, then value, text and color of each bar"""


class Picture(NamedTuple):
    """A file of docs/, and what it shows."""

    path: Path
    title: str
    height: float
    plot: Callable[[Axes, Any], None]
    data: Any

    @property
    def digest(self) -> str:
        """Of the data and of the function that draws them; the file holds the digest that it was
        drawn from."""
        return sha256_of_values([self.title, self.height, self.data, getsource(self.plot)])

    @property
    def is_current(self) -> bool:
        """Whether the file shows the data."""
        if not self.path.exists():
            return False
        with Image.open(self.path) as image:
            return image.info.get("digest") == self.digest

    def draw(self) -> None:
        """Write the file: the title at the left, no frame."""
        figure = Figure(figsize=(8.0, self.height), layout="constrained")
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(length=0)
        self.plot(axes, self.data)
        figure.suptitle(self.title, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
        buffer, information = io.BytesIO(), PngInfo()
        figure.savefig(buffer, dpi=DPI)
        information.add_text("digest", self.digest)
        image = Image.open(buffer).convert("RGB").quantize(NUM_COLORS)
        image.save(self.path, optimize=True, pnginfo=information)


def pictures() -> Iterator[Picture]:
    title = "BLEU on Multi30k, German to English (test_2016_flickr; the tutorial lower-cased)"
    yield Picture(PLOTS / "results.png", title, 3.4, plot_bars, results_bars(results.evaluations()))
    title = "BLEU that each technique adds to multi30k-fast (Multi30k, validation set)"
    yield Picture(PLOTS / "quality.png", title, 3.2, plot_bars, technique_bars())
    title = "Our speed on one core; dashed line: the speed of the others, in fp32"
    yield Picture(PLOTS / "speed.png", title, 5.0, plot_bars, speed_bars(load_records(SPEED)))
    title = "Lower-cased BLEU on the validation set by minutes of CPU time, one core"
    yield Picture(PLOTS / "race.png", title, 4.6, plot_race, race_curves(race.race()))
    yield Picture(
        PLOTS / "mechanisms.png",
        "BLEU of every mechanism, all else equal",
        11.5,
        plot_dots,
        mechanism_dots(),
    )
    titles = {
        "joined": "BLEU by number of joined captions, trained on one to six",
        "single": "BLEU by number of joined captions, trained on single ones",
        "multi30k": "BLEU by length of the German sentence, Multi30k",
        "europarl": "BLEU by length of the German sentence, Europarl",
    }
    for name, title in titles.items():
        record = load_records(BOTTLENECK)[name]
        yield Picture(BOTTLENECK / f"{name}.png", title, 4.6, plot_lines, bleu_lines(record))


def results_bars(records: Mapping[str, Record]) -> Groups:
    """Each configuration that translates Multi30k from German to English."""
    names = {"tutorial": "tutorial, attention", "tutorial+fixed": "tutorial, one fixed vector"}
    groups: Groups = []
    configurations = results.configurations(records)
    for config, scores in sorted(configurations.items(), key=lambda item: float(item[1]["mean"])):
        if scores["test"] == "test_2016_flickr" and scores["languages"] == ["de", "en"]:
            color = PALE if config in names else BLUE
            groups.append(
                (names.get(config, config), [(scores["mean"], f"{scores['mean']:.1f}", color)])
            )
    return groups


def technique_bars() -> Groups:
    groups: Groups = []
    for record in quality.ablation():
        gain, p = -record["against"]["gain"], p_value(record["against"]["p_value"])
        text = f"{gain:+.2f}  (p {p}{'' if quality.is_current(record) else ', former recipe'})"
        groups.append((record["without"], [(gain, text, BLUE)]))
    return groups


def speed_bars(records: Mapping[str, Record]) -> Groups:
    """Our speed relative to each contestant's, in both precisions."""
    label = "training, the tutorial's loop\n(bucketed batches)"
    groups = [(label, _speed_bars(records["train"]["rows"], "ours, fast", 1))]
    works = {
        "training": "training",
        "decoding, beam 5, 14 steps forced": "translating, beam 5",
    }
    for what, title in works.items():
        rows = []
        for row in records["peers"]["rows"]:
            if row["what"] == what and row["hidden_size"] == 512:
                rows.append(row)
        groups.append((f"{title},\nJoeyNMT", _speed_bars(rows, "ours", 0)))
        groups.append((f"{title},\nOpenNMT-py", _speed_bars(rows, "ours", 1)))
    return groups


def _speed_bars(rows: Sequence[Record], ours: str, number: int) -> list[tuple[float, str, str]]:
    """A bar per precision: our speed divided by that of the contestant with this number."""
    ratios = {}
    for row in rows:
        name = row.get("contestant", row.get("name"))
        ratios[name] = list(row["ratios"].values())[number]
    bars = []
    for precision, color in (("fp32", PALE), ("bf16", BLUE)):
        speed = ratios.get(f"{ours}, {precision}")
        if speed is not None:
            bars.append((speed, f"{speed:.1f} ×  in {precision}", color))
    return bars


def mechanism_dots() -> Record:
    """BLEU on captions of every mechanism, by axis."""
    rows = mechanisms.mechanisms()
    groups: dict[str, dict[str, list[float]]] = {}
    for name, row in rows.items():
        if row["bleu"]:
            groups.setdefault(row["axis"], {})[name.split("/")[1]] = row["bleu"]
    return {"groups": groups, "baseline": fmean(rows[mechanisms.BASELINE]["bleu"])}


def bleu_lines(record: Record) -> Record:
    """BLEU of attention, of pooled vectors and of the fixed vector by length."""
    names = [arm["name"] for arm in record["arms"]]
    slots = [name for name in names if name.startswith("slots-") and name != "slots-1"]
    shown = {names[0]: ("attention", BLUE, 3.0), "fixed": ("one fixed vector", ORANGE, 3.0)}
    for name, color in zip(slots, GREENS, strict=False):
        shown[name] = (f"{name.removeprefix('slots-')} vectors", color, 1.8)
    lines = []
    for name, (label, color, width) in shown.items():
        scores = [point["scores"][name]["bleu"] for point in record["points"]]
        values = {key: [score[key] for score in scores] for key in ("mean", "low", "high")}
        lines.append({"label": label, "color": color, "width": width, **values})
    x_label = "captions joined into one input" if slots else "German words and punctuation marks"
    return {
        "lines": lines,
        "ticks": [str(point["label"]) for point in record["points"]],
        "x_label": x_label,
    }


def race_curves(record: Record) -> Record:
    """Lower-cased BLEU by minute of each system that was scored, as some write lower case; a curve
    may end earlier."""
    end = max(record["minutes"])
    curves = []
    for system in record["systems"]:
        minutes = [min(point["minutes"], end) for point in system["points"]]
        points = [(minute, race.bleu_at(system, minute)) for minute in dict.fromkeys(minutes)]
        curves.append(
            {"label": system["name"], "color": RACE_COLORS[system["name"]], "points": points}
        )
    return {"curves": curves, "end": end}


def plot_bars(axes: Axes, groups: Groups) -> None:
    """Groups of horizontal bars, the first at the top, with their values beside them; ratios with a
    line at 1."""
    y, ticks = 0.0, []
    for _, bars in groups:
        ticks.append(y - 0.4 * (len(bars) - 1))
        for value, text, color in bars:
            axes.barh(y, value, height=0.72, color=color)
            axes.annotate(text, (value, y), (5, 0), **BESIDE)
            y -= 0.8
        y -= 0.35
    if any("×" in text for _, bars in groups for _, text, _ in bars):
        axes.axvline(1.0, **{**DASHED, "zorder": 2})
    axes.set_yticks(ticks, [label for label, _ in groups], fontsize=11)
    axes.margins(x=0.22)
    axes.xaxis.set_visible(False)
    axes.spines["bottom"].set_visible(False)


def plot_dots(axes: Axes, data: Record) -> None:
    """A dot per row with the range of its seeds; rows far below the others are written at the left
    edge."""
    left, y, ticks = 75.0, 0.0, []
    edge: Any = {"xycoords": ("axes fraction", "data"), "ha": "right", "fontweight": "bold"}
    for axis, rows in data["groups"].items():
        axes.annotate(axis, (0.0, y), (-4, 0), **BESIDE, **edge, fontsize=11)
        for label, bleu in sorted(rows.items(), key=lambda row: -fmean(row[1])):
            y -= 1
            mean = fmean(bleu)
            ticks.append((y, label))
            if mean < left:
                axes.annotate(f"◂ {mean:.1f}", (left, y), va="center", fontsize=9.5, color=ORANGE)
                continue
            axes.plot([min(bleu), max(bleu)], [y, y], color=PALE, linewidth=3)
            axes.plot(mean, y, "o", color=BLUE, markersize=6)
            box: Any = {"color": "white", "pad": 0.8}
            axes.annotate(
                f"{mean:.1f}", (max(bleu), y), (6, 0), **BESIDE, fontsize=9.5, color=GRAY, bbox=box
            )
        y -= 1.4
    axes.axvline(data["baseline"], **DASHED)
    axes.set_yticks([height for height, _ in ticks], [label for _, label in ticks], fontsize=9.5)
    axes.set(xlim=(left, 100), ylim=(y + 0.6, 1.0))
    axes.set_xlabel(
        "BLEU on captions: mean (dot) and range of the seeds; dashed: the baseline, additive "
        "attention"
    )


def plot_lines(axes: Axes, data: Record) -> None:
    """Lines with their names at the right end."""
    x = range(len(data["ticks"]))
    top = max(max(line["high"]) for line in data["lines"])
    height = -0.02 * top
    for line in sorted(data["lines"], key=lambda line: sum(line["mean"])):
        color, last = line["color"], line["mean"][-1]
        axes.plot(x, line["mean"], color=color, linewidth=line["width"], marker="o")
        axes.fill_between(x, line["low"], line["high"], color=color, alpha=0.15, linewidth=0)
        height = max(last, height + 0.06 * top)  # labels do not overlap
        weight = "bold" if line["width"] > 2 else "normal"
        text = f"{line['label']}: {last:.0f}"
        axes.annotate(
            text, (x[-1], height), (12, 0), **BESIDE, color=color, fontsize=12, fontweight=weight
        )
    axes.set_xticks(list(x), data["ticks"], fontsize=11)
    axes.set(xlim=(-0.2, x[-1] + 1.7), ylim=(0, 1.05 * top))
    axes.set_xlabel(data["x_label"], fontsize=11)
    axes.grid(axis="y", alpha=0.25)


def plot_race(axes: Axes, data: Record) -> None:
    """A curve per system with its name at the right edge. Our runs made all their epochs, so their
    curves go on, dashed; the others were stopped."""
    end, height = data["end"], -10.0
    curves = [curve for curve in data["curves"] if curve["points"]]
    top = max((bleu for curve in curves for _, bleu in curve["points"]), default=1.0)
    for curve in sorted(curves, key=lambda curve: float(curve["points"][-1][1])):
        minutes, bleu = zip(*curve["points"], strict=True)
        is_ours, color = curve["label"].startswith("ours"), curve["color"]
        axes.plot(
            minutes, bleu, color=color, linewidth=3 if is_ours else 1.8, marker="o", markersize=4
        )
        if is_ours:
            axes.plot(
                [minutes[-1], end],
                [bleu[-1], bleu[-1]],
                color=color,
                linewidth=1,
                linestyle=(0, (2, 2)),
            )
        height = max(bleu[-1], height + 0.055 * top)  # labels do not overlap
        text = f"{curve['label']}: {bleu[-1]:.1f}"
        weight = "bold" if is_ours else "normal"
        axes.annotate(
            text, (end, height), (8, 0), **BESIDE, color=color, fontsize=10, fontweight=weight
        )
    axes.set(xlim=(0, 1.42 * end), ylim=(0, max(1.08 * top, height + 0.05 * top)))
    axes.set_xticks([end * step / 6 for step in range(7)])
    axes.set_xlabel("minutes of CPU time in training", fontsize=11, loc="left")
    axes.grid(axis="y", alpha=0.25)
