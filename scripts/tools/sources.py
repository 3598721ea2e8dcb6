"""Measure what three sources of the same sentence gain over one: Multi30k, German, French and Czech to English.

All runs have the config `multi30k-sources`; they differ in `data.source_languages` alone. BLEU is that of
test_2016_flickr, with the paired bootstrap test of three sources against the single source that validates best.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.laboratory.harness.records import RECORDS, add_record_option, add_set_option, describe, exit_code
from scripts.laboratory.harness.runs import bootstrap_by_name, score_lines, score_row, train_one
from scripts.tools.levers_page import VALIDATION
from scripts.tools.other_records import sources_block
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.files import write_json
from seq2seq_attn.run_dir import RunDir

RECORD = RECORDS / "sources.json"
CONFIG, TEST = "multi30k-sources", "test_2016_flickr"
LANGUAGES = ("de", "fr", "cs")
SYSTEMS = (("de",), ("fr",), ("cs",), LANGUAGES)


def train_run(directory: Path, sources: Sequence[str], overrides: Sequence[str]) -> RunDir:
    """A run with these sources."""
    own = f"data.source_languages=[{','.join(sources)}]"
    return train_one(directory / f"sources-{'-'.join(sources)}", [CONFIG], [own, *overrides])


def main() -> None:
    """Train, translate, print the section of the page, write the record."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(
        prog="scripts/sources", description="BLEU of three sources together and of each alone, on Multi30k."
    )
    parser.add_argument("--dir", type=Path, default=Path("runs"), help="runs; default: %(default)s")
    add_record_option(parser, RECORD)
    add_set_option(parser)
    options = parser.parse_args()
    runs = {sources: train_run(options.dir, sources, options.set) for sources in SYSTEMS}
    scored = {sources: score_lines(run, *prepare_corpus(run.config()).text(TEST)) for sources, run in runs.items()}
    samples = bootstrap_by_name(scored)
    singles = [sources for sources in SYSTEMS if len(sources) == 1]
    single = max(singles, key=lambda sources: float(runs[sources].best_metadata()["bleu"]))
    rows = [
        {
            "sources": list(sources),
            **score_row(samples[sources], samples[single] if sources == LANGUAGES else None),
        }
        for sources in SYSTEMS
    ]
    first = next(iter(scored.values()))
    about = {
        "test": TEST,
        **({} if options.set else {"chosen_on": VALIDATION}),
        "num_test": len(first),
        "config": CONFIG,
        "set": options.set,
        "seed": runs[LANGUAGES].config().seed,
        "best_single": single[0],
        "signature": first.score().signature,
        "environment": describe("scripts/sources"),
    }
    record = {"what": "Multi30k to English, flat additive attention", "systems": rows, **about}
    print("\n".join(sources_block(record)))
    if options.record:
        write_json(options.record, record)


if __name__ == "__main__":
    sys.exit(exit_code(main))
