"""Measure what the options of the search do to BLEU: beam size against length penalty, coverage penalty, a ban on
repeated n-grams, minimum Bayes risk over samples. On the validation set, since the options are chosen by it.

With --record, rows are kept one by one; what the record already holds of the same model is not measured again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from scripts.laboratory.harness.pages import p_value, provenance, table
from scripts.laboratory.harness.records import RECORDS, Record, add_record_option, describe, exit_code
from seq2seq_attn import load
from seq2seq_attn.errors import UserError
from seq2seq_attn.evaluation.test_sets import find_sets
from seq2seq_attn.files import read_json, sha256_of, write_json
from seq2seq_attn.metrics.bleu import CorpusStatistics, Measure
from seq2seq_attn.metrics.significance import paired_randomization
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.translate.translation import Translation
from seq2seq_attn.translate.translator import Translator

RECORD = RECORDS / "search-quality.json"
BEAM_SIZES = (1, 2, 5, 10, 20)
LENGTH_PENALTIES = (0.0, 0.5, 1.0)
BASELINE = {"beam_size": 5, "length_penalty": 0.5}
OTHERS: tuple[Record, ...] = (
    *({"coverage_penalty": weight} for weight in (0.1, 0.2, 0.4)),
    *({"no_repeat_ngram": n} for n in (2, 3)),
    {"method": "sample"},
    {"method": "sample", "temperature": 0.5},
    {"method": "mbr", "num_samples": 16, "temperature": 0.5},
)
"""each on top of the baseline, where it is a beam search too"""


def rows() -> Iterator[Record]:
    """The options of each row, the baseline first."""
    yield BASELINE
    for beam_size in BEAM_SIZES:
        for length_penalty in LENGTH_PENALTIES:
            if (beam_size, length_penalty) != (BASELINE["beam_size"], BASELINE["length_penalty"]):
                yield {"beam_size": beam_size, "length_penalty": length_penalty}
    for options in OTHERS:
        yield options if "method" in options else BASELINE | options


class Bench:
    """A translator and a validation set, with what was measured already."""

    def __init__(self, run: RunDir, path: Path | None, num_pairs: int | None) -> None:
        (pairs,) = find_sets([run], [run.config()], ["valid"])
        self._sources = pairs.source[:num_pairs]
        self._measure = Measure("bleu", pairs.references[:num_pairs])
        self._translator: Translator = load(run.path, "cpu")
        self._path = path
        model = sha256_of(run.path / "model.safetensors")
        self.record = self._known(model) or {
            "model": {"sha256": model, "config": run.config().name, "seed": run.config().seed},
            "baseline": BASELINE,
            "num_pairs": len(self._sources),
            "rows": [],
        }
        self._baseline: CorpusStatistics | None = None

    def _known(self, model: str) -> Record | None:
        if not (self._path and self._path.exists()):
            return None
        found: Record = read_json(self._path)
        if found["model"]["sha256"] != model or found["num_pairs"] != len(self._sources):
            raise UserError(f"{self._path}: of another model or number of pairs; name another --record FILE")
        return found

    def _translate(self, options: Record) -> tuple[CorpusStatistics, list[list[Translation]]]:
        found = self._translator.translate_lines(self._sources, SearchOptions.given(keep_attention=False, **options))
        lines = list(found)
        return self._measure.statistics([translations[0].text for translations in lines]), lines

    def measure(self, options: Record) -> None:
        """Translate with these options, compare with the baseline, keep the row."""
        if any(row["options"] == options for row in self.record["rows"]):
            return
        began_at = time.process_time()
        statistics, lines = self._translate(options)
        seconds = time.process_time() - began_at
        if self._baseline is None:
            self._baseline = statistics if options == BASELINE else self._translate(BASELINE)[0]
        score = statistics.score()
        test = paired_randomization(self._baseline, statistics)
        row = {
            "options": options,
            "bleu": score.score,
            "signature": score.signature,
            "p": None if options == BASELINE else test.p_value,
            "tokens": round(float(np.mean([len(translations[0].tokens) for translations in lines])), 2),
            "cpu_s": round(seconds, 1),
        }
        self.record["rows"].append(row)
        self.record["environment"] = describe("scripts/search_quality")
        if self._path:
            write_json(self._path, self.record)
        print(options, f"BLEU {score.score:.2f}, {seconds:.0f} s of CPU", flush=True)


def render(record: Record) -> str:
    """A section of docs/quality.md: beam size against length penalty, then the others against the baseline."""
    rows = {tuple(sorted(row["options"].items())): row for row in record["rows"]}

    def bleu_of(**options: Any) -> str:
        row = rows.get(tuple(sorted(options.items())))
        return "" if row is None else f"{row['bleu']:.2f}"

    grid = [[f"beam {k}", *(bleu_of(beam_size=k, length_penalty=a) for a in LENGTH_PENALTIES)] for k in BEAM_SIZES]
    others = []
    for row in record["rows"]:
        extra = {key: value for key, value in row["options"].items() if BASELINE.get(key) != value}
        if set(extra) - set(BASELINE):
            named = ", ".join(f"`{key}: {value}`" for key, value in extra.items())
            others.append([named, f"{row['bleu']:.2f}", p_value(row["p"]), f"{row['tokens']}", f"{row['cpu_s']:.0f}"])
    first = record["rows"][0]
    about = (
        f"BLEU on the validation set (n = {record['num_pairs']:,}) of config `{record['model']['config']}`, seed "
        f"{record['model']['seed']}, `{first['signature']}`. {provenance(record, 'search_quality')}"
    )
    return "\n".join(
        [
            "## Search",
            "",
            about,
            "",
            *table(["", *(f"length penalty {a:g}" for a in LENGTH_PENALTIES)], grid),
            "",
            f"Against beam {BASELINE['beam_size']} with length penalty {BASELINE['length_penalty']:g} (BLEU "
            f"{first['bleu']:.2f}, {first['tokens']} tokens per sentence, {first['cpu_s']:.0f} CPU seconds); p by "
            "paired approximate randomization:",
            "",
            *table(["option", "BLEU", "p", "tokens", "CPU s"], others),
            "",
        ]
    )


def main() -> None:
    """Measure what the record lacks, and print it."""
    parser = argparse.ArgumentParser(prog="scripts/search_quality", description=__doc__)
    parser.add_argument("run", type=Path, help="run directory")
    add_record_option(parser, RECORD)
    parser.add_argument("--pairs", type=int, help="only so many validation pairs")
    options = parser.parse_args()
    bench = Bench(RunDir(options.run), options.record, options.pairs)
    for row in rows():
        bench.measure(row)
    print(render(bench.record))


if __name__ == "__main__":
    sys.exit(exit_code(main))
