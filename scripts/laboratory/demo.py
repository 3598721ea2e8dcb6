"""The demonstration of attention against one fixed vector: see `scripts/demo`."""

import argparse
import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.laboratory.harness.records import add_set_option, exit_code, read_events
from scripts.laboratory.harness.runs import SEQ2SEQ, Run, train_all
from seq2seq_attn import evaluate, load
from seq2seq_attn.errors import UserError
from seq2seq_attn.report.files import plot_path
from seq2seq_attn.report.tables import Table
from seq2seq_attn.runtime.threads import num_available_cpus
from seq2seq_attn.translate.attention_map import MAP_NOTE, AttentionMap

ATTENTION = Path("runs/demo-attention")
FIXED = Path("runs/demo-fixed")
CONFIGS = {ATTENTION: "demo", FIXED: "demo-fixed"}
REPORT = ATTENTION / "report.comparison.json"
PAGE = Path("runs/demo.html")

SENTENCE = "Im Park hat die junge Frau dem Kind, das weint, den roten Ball gezeigt."
REFERENCE = "In the park, the young woman showed the red ball to the child who is crying."
OWN_SENTENCE = "Der kleine Hund, den die Frau sieht, schläft heute."
"""of words that the embedded corpus has, as a test checks"""

SHOWN_EPOCHS = (1, 3)
WIDTH = 80
"""columns of running text"""
SHADES = {0.0: " ", 0.05: "░", 0.2: "▒", 0.4: "▓", 0.7: "█"}
"""of the map, by the smallest weight that each stands for"""
SUGGESTIONS = f"""\
  # or other words of {ATTENTION}/source.vocab
  .venv/bin/seq2seq translate --run {ATTENTION} "{OWN_SENTENCE}"
  # all test sentences with their attention
  .venv/bin/seq2seq evaluate {ATTENTION} {FIXED} --report report.html
  # a translator of real captions: downloads Multi30k (1.4 MB), an hour on a core with bf16
  .venv/bin/seq2seq train"""


def main() -> None:
    """Train, then show; finished runs are reused."""
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description="Attention against one fixed vector."
    )
    add_set_option(parser)
    train(dict(parser.parse_args().set))
    export = subprocess.Popen(
        [*SEQ2SEQ, "export", *CONFIGS, "-o", PAGE], stdout=subprocess.DEVNULL
    )  # takes seconds
    show_sentence()
    show_scores()
    step("A page in which both models translate as you type")
    if export.wait():
        raise UserError(f"{PAGE}: it could not be written")
    print(PAGE, flush=True)
    if "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ or sys.platform == "darwin":
        webbrowser.open(PAGE.resolve().as_uri())
    step("What to run next")
    print(SUGGESTIONS)


def step(title: str) -> None:
    print(f"\n\033[1m{title}\033[0m" if sys.stdout.isatty() else f"\n{title}", flush=True)


def train(settings: Mapping[str, Any]) -> None:
    """Train what is not finished: one process per core, each on one thread. Meanwhile, a thread
    translates the sentence with the attention model after some of its validations."""
    runs = [Run(path, (config,), settings) for path, config in CONFIGS.items()]
    jobs = min(len(runs), num_available_cpus())
    how = "side by side" if jobs > 1 else "one after the other"
    step(
        f"Train a model with attention and one with a fixed vector, {how}: same data, epochs and "
        "size"
    )
    if not best_epoch():  # not in the thread, where a message may come before the end of the line
        print(f"source: {SENTENCE}", flush=True)
    ended = threading.Event()
    watcher = threading.Thread(target=show_progress, args=(ended,), daemon=True)
    watcher.start()
    try:
        train_all(runs, jobs)
    finally:
        ended.set()
        watcher.join()


def show_progress(ended: threading.Event) -> None:
    began_at = time.monotonic()
    shown = best_epoch()
    while not ended.wait(0.5):
        epoch = best_epoch()
        if epoch == shown or epoch not in SHOWN_EPOCHS:
            continue
        try:
            [translation] = load(ATTENTION).translate([SENTENCE])
        except UserError:  # the run is being written
            continue
        shown = epoch
        print(
            f"after {(time.monotonic() - began_at) / 60:.1f} minutes: {translation.text}",
            flush=True,
        )


def best_epoch() -> int:
    """The epoch of the attention model's best version so far; 0: there is none."""
    best = [event["epoch"] for event in read_events(ATTENTION) if event.get("is_best")]
    return int(best[-1]) if best else 0


def show_sentence() -> None:
    """Reference and translations of the sentence, then where attention looked."""
    step("One sentence: the German verb comes last, after a relative clause")
    [attended], [fixed] = (load(path).translate([SENTENCE]) for path in CONFIGS)
    lines = {
        "source": SENTENCE,
        "reference": REFERENCE,
        "attention": attended.text,
        "fixed vector": fixed.text,
    }
    for name, text in lines.items():
        print(f"{name:<12}  {text}")
    attention = attended.attention_map()
    if attention is not None:
        print(f"\n{attention_text(attention)}")


def attention_text(attention: AttentionMap) -> str:
    """A row for each target token, a column for each source token, whose letters stand above it,
    one under the other. A row ends with the source token of its largest weight."""
    sources = attention.source_tokens
    targets = attention.target_tokens
    height = max(len(source) for source in sources)
    label_width = max((len(target) for target in targets), default=0)
    columns = zip(*(source.rjust(height) for source in sources), strict=True)
    lines = [f"{'':{label_width}}  {' '.join(letters)}".rstrip() for letters in columns]
    for target, weights_S in zip(targets, attention.weights_TS, strict=True):
        cells = "".join(
            2 * SHADES[max(least for least in SHADES if weight >= least)] for weight in weights_S
        )
        lines.append(f"{target:>{label_width}}  {cells}  {sources[int(weights_S.argmax())]}")
    legend = "  ".join(f"{shade} {least:g}+" for least, shade in SHADES.items() if least)
    return "\n".join([*lines, "", f"weight: {legend}", textwrap.fill(MAP_NOTE, WIDTH)])


def show_scores() -> None:
    report = evaluate(list(CONFIGS), no_attention=True)
    step(f"BLEU by sentence length (as a plot: {plot_path(REPORT, 'bleu')})")
    [scores] = report.sets
    header = [scores.unit, *(row.bucket.label for row in scores.buckets)]
    rows = []
    for index, name in enumerate(("attention", "fixed vector")):
        bleu = [row.scores["bleu"][index].interval.value for row in scores.buckets]
        rows.append([name, *(f"{value:.1f}" for value in bleu)])
    print(Table(header, rows).to_text())
    print(textwrap.fill(report.conclusion, WIDTH, break_on_hyphens=False))


if __name__ == "__main__":
    logging.basicConfig(format="%(message)s")
    logging.getLogger("scripts.laboratory.harness.runs").setLevel(logging.INFO)
    sys.exit(exit_code(main))
