"""Try levers for a few epochs each, with one seed, before anything is trained to its end.

    scripts/first_look                                      all levers
    scripts/first_look --only "two layers" "token dropout"  some of them

Each run is `multi30k` with the output `softmax` and the lever's settings, for six epochs; with extra pairs, for as many
updates. Finished runs are kept, and interrupted ones resumed.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import stdev

from scripts.laboratory.harness.pages import PAIRED_BOOTSTRAP, p_value, table
from scripts.laboratory.harness.records import RECORDS, Record, describe, exit_code
from scripts.laboratory.harness.runs import train_all, translate_to
from scripts.tools import distil, extra_pairs, levers
from scripts.tools.levers_page import VALIDATION
from seq2seq_attn.commands.train_runs import PlannedRun
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import read_json, write_json
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.search.options import SearchOptions

RECORD = RECORDS / "first-look.json"
CONFIGS = ("multi30k", "output/softmax")
BASELINE = "the recipe"
EPOCHS = 6
NUM_UPDATES = 2_724
"""that the recipe makes in these epochs"""
SELF_DISTILLED = "self-distilled"
_SIDES = {
    **{language: (language, extra_pairs.TARGET) for language in extra_pairs.OTHERS},
    "reversed": (extra_pairs.TARGET, extra_pairs.SOURCE),
    SELF_DISTILLED: (extra_pairs.SOURCE, extra_pairs.TARGET),
}
"""extra pairs: the names of texts, and their languages"""
_PAIRS = "pairs"
"""the folder of these texts"""
_ONE_EPOCH_MORE = ("train.max_epochs=1", "train.optimizer.learning_rate=3e-4")


@dataclass(frozen=True)
class Lever:
    """A change of the recipe: `multi30k` with the output `softmax`."""

    name: str
    settings: tuple[str, ...] = ()
    overlays: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    """texts of extra pairs that it trains on; keys of `_SIDES`"""
    start_from: str = ""
    """the lever whose run it goes on from"""

    @property
    def stem(self) -> str:
        """The name of its run's folder."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def change(self) -> list[str]:
        """The settings, pairs and start that differ from the recipe, for the table."""
        code = [f"`{word}`" for word in (*self.overlays, *self.settings)]
        pairs = [f"extra pairs: {' and '.join(self.pairs)}"] if self.pairs else []
        return [*code, *pairs, *([f"starts from: {self.start_from}"] if self.start_from else [])]

    @property
    def needs_a_run(self) -> bool:
        """Whether another lever's run has to be there first."""
        return bool(self.start_from) or SELF_DISTILLED in self.pairs

    def planned(self, folder: Path) -> PlannedRun:
        """Its training."""
        settings = [f"train.max_epochs={EPOCHS}"]
        if self.pairs:
            extra = [[f"{folder / _PAIRS / name}.{side}" for side in _SIDES[name]] for name in self.pairs]
            settings += [f"data.extra={json.dumps(extra)}", f"train.max_updates={NUM_UPDATES}"]
        if self.start_from:
            settings.append(f"train.start_from={folder / BY_NAME[self.start_from].stem}")
        return PlannedRun.of(self.run(folder), [*CONFIGS, *self.overlays], [*settings, *self.settings])

    def run(self, folder: Path) -> RunDir:
        """Its run."""
        return RunDir(folder / self.stem)


def _layers(*options: str) -> tuple[str, ...]:
    sides = ("encoder", "decoder")
    numbers = tuple(f"model.{side}.num_layers=2" for side in sides)
    return (*numbers, *(f"model.{side}.options.{option}" for side in sides for option in options))


_VOCABULARIES = [
    Lever(
        f"{size:,} subwords, batches of {batch}",
        (f"data.tokenizer.vocab_size={size}", f"train.batch.size={batch}"),
    )
    for size in (4_000, 8_000, 12_000)
    for batch in (32, 64, 128)
    if (size, batch) != (8_000, 64)
]
_SEEDS = {f"{BASELINE}, seed {seed}": (f"seed={seed}",) for seed in (2, 3)}
"""the recipe again, to show the noise"""
LEVERS = [
    Lever(BASELINE),
    *(Lever(name, settings) for name, settings in _SEEDS.items()),
    *_VOCABULARIES,
    Lever("BPE", ("data.tokenizer.model_type=bpe",)),
    Lever("BPE-dropout", ("data.tokenizer.model_type=bpe", "data.subword_sampling=0.1")),
    Lever("subword sampling", ("data.subword_sampling=0.3",)),
    Lever("the rate falls at the end", ("train.schedule.name=trapezoid", "train.schedule.cooldown=0.3")),
    Lever("token dropout", ("model.dropout.token=0.1",)),
    Lever("recurrent dropout", ("model.dropout.recurrent=0.2",)),
    Lever("R-Drop", overlays=("objective/r_drop",)),
    Lever("R-Drop with token dropout", ("model.dropout.token=0.1",), ("objective/r_drop",)),
    Lever("layer normalization", overlays=("cell/layer_norm_gru",)),
    Lever("two layers", _layers()),
    Lever("two residual layers", _layers("residual=true")),
    Lever("multi-head attention", overlays=("attention/multi_head",)),
    Lever("lexical output", overlays=("output/lexical",)),
    Lever("lexicon output", overlays=("output/lexicon",)),
    Lever("one embedding for both sides", ("data.vocab.joint=true", "model.tie_embeddings=all")),
    Lever("concatenated pairs", ("data.concatenate={1: 0.8, 2: 0.2}",)),
    Lever("French and Czech sources", ("data.extra_in_vocab=true",), pairs=extra_pairs.OTHERS),
    Lever("one vocabulary for both sides", ("data.vocab.joint=true",)),
    Lever("one epoch of both directions", ("data.vocab.joint=true", "train.max_epochs=1"), pairs=("reversed",)),
    Lever(
        "both directions, then four epochs of one",
        ("data.vocab.joint=true", "train.max_epochs=4"),
        start_from="one epoch of both directions",
    ),
    Lever("self-distillation", pairs=(SELF_DISTILLED,)),
    Lever("one epoch more", _ONE_EPOCH_MORE, start_from=BASELINE),
    Lever("minimum risk for one epoch more", _ONE_EPOCH_MORE, ("objective/minimum_risk",), start_from=BASELINE),
]
BY_NAME = {lever.name: lever for lever in LEVERS}


def write_pairs(folder: Path, needed: Sequence[Lever]) -> None:
    """The extra pairs that some levers train on; those of the recipe's own translations need its run."""
    out = folder / _PAIRS
    names = {name for lever in needed for name in lever.pairs}
    if languages := [name for name in extra_pairs.OTHERS if name in names]:
        extra_pairs.write_languages(out, languages)
    if "reversed" in names:
        extra_pairs.write_reversed(out)
    if SELF_DISTILLED in names:
        recipe = BY_NAME[BASELINE].run(folder)
        sources, references = prepare_corpus(recipe.config()).text("train")
        options = SearchOptions.given(beam_size=levers.BEAM_SIZE, n_best=levers.BEAM_SIZE, keep_attention=False)
        found = translate_to(out / f"{SELF_DISTILLED}.jsonl", [recipe], sources, options)
        pairs, _ = distil.select(sources, references, found)
        distil.write_pairs(out / SELF_DISTILLED, _SIDES[SELF_DISTILLED], pairs)


def first_look(folder: Path, chosen: Sequence[Lever], jobs: int, record: Path) -> Record:
    """Train what is missing, score it on the validation set, and add it to the record.

    Raises:
        UserError: training failed.
    """
    needed = {lever.name: lever for lever in (BY_NAME[BASELINE], *chosen)}
    for lever in chosen:
        if lever.start_from:
            needed.setdefault(lever.start_from, BY_NAME[lever.start_from])
    for is_second in (False, True):
        stage = [lever for lever in needed.values() if lever.needs_a_run == is_second]
        write_pairs(folder, stage)
        planned = [lever.planned(folder) for lever in stage]
        train_all(planned, jobs)
    found: Record = read_json(record) if record.exists() else {"beam_size": levers.BEAM_SIZE, "rows": {}}
    baseline = levers.validate([BY_NAME[BASELINE].run(folder)])
    for lever in needed.values():
        run = lever.run(folder)
        validated = levers.validate([run])
        row = {"change": lever.change, **levers.entry(run, validated)}
        if lever.name != BASELINE:
            row["against"] = levers.compared([baseline], [validated])
        found["rows"][lever.name] = row
    found["environment"] = describe("scripts/first_look")
    write_json(record, found)
    return found


def render(record: Record) -> list[str]:
    """The section of docs/quality.md."""
    rows: Mapping[str, Record] = record["rows"]
    score = rows[BASELINE][VALIDATION]
    of_seeds = [rows[name][VALIDATION]["bleu"] for name in (BASELINE, *_SEEDS) if name in rows]
    spread = f"; SD of {BASELINE} over {len(of_seeds)} seeds: {stdev(of_seeds):.2f}" if len(of_seeds) > 1 else ""
    lines = [
        "## First look",
        "",
        f"`multi30k` with the output `softmax` and one change at a time, for {EPOCHS} epochs, or {NUM_UPDATES:,} "
        f"updates where there are extra pairs, unless its settings say otherwise; one seed{spread}. BLEU on "
        f"{score['num_pairs']:,} validation pairs, beam {record['beam_size']}, `{score['signature']}`; the gain is "
        f"over a run of {BASELINE} on the same machine, whose BLEU is in the next column, with p by "
        f"{PAIRED_BOOTSTRAP}. Six epochs are too few to judge regularizers or larger models. For a run that starts "
        "from another, updates and minutes count its own training only. `scripts/first_look`.",
        "",
    ]
    ordered = sorted(rows.items(), key=lambda one: -one[1].get("against", {"gain": math.inf})["gain"])
    cells = [
        [
            name,
            f"{row[VALIDATION]['bleu']:.2f}",
            f"{row['against']['bleu']:.2f}" if "against" in row else "",
            f"{row['against']['gain']:+.2f} ({p_value(row['against']['p_value'])})" if "against" in row else "",
            f"{row['updates']:,}",
            f"{row['minutes']:.0f}",
            f"{row['parameters']:,}",
            row["precision"],
            row["hardware"],
            row["commit"],
            ", ".join(row["change"]),
        ]
        for name, row in ordered
    ]
    header = ["change", "BLEU", BASELINE, "gain (p)", "updates", "minutes", "parameters", "precision", "hardware"]
    header += ["commit", "settings"]
    return [*lines, *table(header, cells), ""]


def main() -> None:
    """Train, score, print the table."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(
        prog="scripts/first_look", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", default=[*BY_NAME], metavar="LEVER", help=f"of: {', '.join(BY_NAME)}")
    parser.add_argument("--dir", type=Path, default=Path("runs/first-look"), help="runs; default: %(default)s")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs trained in parallel; default: 1")
    parser.add_argument("--record", type=Path, default=RECORD, metavar="FILE", help="default: %(default)s")
    options = parser.parse_args()
    if unknown := [name for name in options.only if name not in BY_NAME]:
        raise UsageError(f"--only {unknown[0]!r}: expected some of {', '.join(map(repr, BY_NAME))}")
    chosen = [BY_NAME[name] for name in options.only]
    print("\n".join(render(first_look(options.dir, chosen, options.jobs, options.record))))


if __name__ == "__main__":
    sys.exit(exit_code(main))
