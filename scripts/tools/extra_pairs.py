"""Write extra training pairs for Multi30k, German to English, to be named in `data.extra`.

    scripts/extra_pairs languages                      French and Czech sources of the same English captions
    scripts/extra_pairs reversed                       English to German: two directions in one model (Ding et al. 2021)
    scripts/extra_pairs captions --task2 FOLDER        track B: new captions of the data set's task 2, one language each
    scripts/extra_pairs back-translate RUN...          their English side, translated by English-German runs
    scripts/extra_pairs self-train RUN...              their German side, translated by German-English runs

Several runs translate as an ensemble. A translation that was interrupted continues where it stopped. No written
sentence is one of a validation or test set of task 1, in any of its languages.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from scripts.laboratory.harness.records import exit_code
from scripts.laboratory.harness.runs import translate_to
from scripts.tools.levers_page import TASK2
from seq2seq_attn.config import load_config
from seq2seq_attn.data.extra import sentence_keys
from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import write_lines
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.text import multi30k
from seq2seq_attn.text.corpus import iter_lines, read_pairs
from seq2seq_attn.text.normalize import bare, normalize

SOURCE, TARGET = "de", "en"
OTHERS = ("fr", "cs")
TASK2_FILES = tuple(f"train.{number}" for number in range(1, 6))
"""of task 2; its test_2016 files hold the references of task 1's test set and are never read"""


def fetched(language: str) -> dict[str, list[Path]]:
    """The files of task 1 with German (or another language) and English text, by split."""
    data = load_config(["multi30k"]).data
    languages = (language, TARGET)
    folder = multi30k.fetch(data.data_dir, data.source_dir, languages=languages)
    return {split: [folder / name for name in names] for split, names in multi30k.published_splits(*languages).items()}


def held_out() -> set[str]:
    """The sentences of all validation and test sets of task 1, in all languages, as `bare` leaves them."""
    splits = [(split, paths) for language in (SOURCE, *OTHERS) for split, paths in fetched(language).items()]
    return sentence_keys(
        line for split, paths in splits if split != "train" for path in paths for line in iter_lines(path)
    )


def write_languages(out: Path, languages: Sequence[str]) -> list[list[Path]]:
    """Pairs of other languages and English."""
    denied = held_out()
    return [
        _write(out / language, (language, TARGET), zip(*read_pairs(*fetched(language)["train"]), strict=True), denied)
        for language in languages
    ]


def write_reversed(out: Path) -> list[list[Path]]:
    """The training pairs with source and target exchanged."""
    pairs = zip(*reversed(read_pairs(*fetched(SOURCE)["train"])), strict=True)
    return [_write(out / "reversed", (TARGET, SOURCE), pairs, held_out())]


def write_captions(out: Path, task2: Path) -> None:
    """New captions of task 2: distinct, in no training pair and no validation or test set of task 1.

    Raises:
        UserError: a file is missing.
    """
    denied = held_out()
    for side, language in enumerate((SOURCE, TARGET)):
        known = sentence_keys(iter_lines(fetched(SOURCE)["train"][side]))
        lines = [line for name in TASK2_FILES for line in iter_lines(task2 / f"{name}.{language}.gz")]
        new: dict[str, str] = {}
        for line in lines:
            if (key := bare(line)) not in known and key not in denied:
                new.setdefault(key, normalize(line))
        num_denied = sum(bare(line) in denied for line in lines)
        new.pop("", None)
        write_lines(_captions(out, language), new.values())
        print(
            f"{_captions(out, language)}: {len(new):,} new captions of {len(lines):,}; {num_denied:,} denied, as "
            "sentences of a validation or test set",
            file=sys.stderr,
        )


def translate_captions(out: Path, name: str, runs: Sequence[RunDir], options: argparse.Namespace) -> list[Path]:
    """Pairs of captions and their translations, by runs into German (`back-translated`) or English (`self-trained`).

    Raises:
        UsageError: a run translates between other languages.
        UserError: there are no captions yet.
    """
    languages = (TARGET, SOURCE) if name == "back-translated" else (SOURCE, TARGET)
    for run in runs:
        data = run.config().data
        if (data.source_name, data.target_language) != languages:
            raise UsageError(
                f"{run.path}: translates {data.source_name} to {data.target_language}, not {' to '.join(languages)}; "
                "name another run"
            )
    lines = list(islice(iter_lines(_captions(out, languages[0])), options.limit))
    search = SearchOptions.given(beam_size=options.beam_size, keep_attention=False)
    found = translate_to(out / f"{TASK2}-{name}.jsonl", runs, lines, search, device=options.device)
    pairs: Iterator[tuple[str, str]] = ((line, best) for line, (best, *_) in zip(lines, found, strict=True))
    if name == "back-translated":
        pairs = ((best, line) for line, best in pairs)
    return _write(out / f"{TASK2}-{name}", (SOURCE, TARGET), pairs, held_out())


def _captions(out: Path, language: str) -> Path:
    return out / f"{TASK2}-captions.{language}"


def _write(prefix: Path, languages: Sequence[str], pairs: Iterator[tuple[str, str]], denied: set[str]) -> list[Path]:
    """Write the pairs without blank or denied sides. Returns source and target file."""
    read = list(pairs)
    kept = [pair for pair in read if not denied.intersection(map(bare, pair)) and all(map(bare, pair))]
    paths = [Path(f"{prefix}.{language}") for language in languages]
    for side, path in enumerate(paths):
        write_lines(path, (normalize(pair[side]) for pair in kept))
    print(
        f"{prefix}: {len(kept):,} pairs; {len(read) - len(kept):,} dropped, with a side that is blank or a sentence of "
        "a validation or test set",
        file=sys.stderr,
    )
    return paths


def main() -> None:
    """Write the pairs, and print how to train with them."""
    parser = argparse.ArgumentParser(
        prog="scripts/extra_pairs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("runs/extra"), help="folder; default: %(default)s")
    steps = parser.add_subparsers(dest="step", required=True)
    steps.add_parser("languages").add_argument("--languages", nargs="+", choices=OTHERS, default=OTHERS)
    steps.add_parser("reversed")
    steps.add_parser("captions").add_argument(
        "--task2", type=Path, required=True, help="folder with train.1.en.gz, ..."
    )
    for step in ("back-translate", "self-train"):
        translation = steps.add_parser(step)
        translation.add_argument("runs", type=RunDir, nargs="+", metavar="RUN")
        translation.add_argument("--beam-size", type=int, default=5, metavar="N")
        translation.add_argument("--limit", type=int, metavar="N", help="only so many captions")
        translation.add_argument("--device", default="auto")
    options = parser.parse_args()
    match options.step:
        case "languages":
            written = write_languages(options.out, options.languages)
        case "reversed":
            written = write_reversed(options.out)
        case "captions":
            write_captions(options.out, options.task2)
            return
        case step:
            name = {"back-translate": "back-translated", "self-train": "self-trained"}[step]
            written = [translate_captions(options.out, name, options.runs, options)]
    extra = json.dumps([[str(path) for path in paths] for paths in written])
    print(f"--set 'data.extra={extra}' --set data.extra_in_vocab=true")


if __name__ == "__main__":
    sys.exit(exit_code(main))
