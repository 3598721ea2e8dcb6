"""Distil an ensemble of runs into one student of the same size (Kim and Rush 2016, sequence-level distillation).

1. Teachers: several seeds of a configuration, trained here, or finished runs (--teachers RUN...).
2. The ensemble translates the sources of the training pairs: the --n-best best hypotheses of a beam search.
3. Of these, the --keep closest to the reference by sentence chrF become pairs (Kim and Rush, section 3.3; with
   --n-best 1 the ensemble's best). --min-score drops pairs far from the reference, like the filter of Freitag et al.
   2017. Pairs that repeat an original pair or one another are dropped.
4. The student learns from its teachers' training pairs and these, given to it as `data.extra`. Its subword model and
   vocabularies are those of the original pairs, as its teachers' are, so student and teachers can form an ensemble. If
   its configuration has `train.start_from`, each student starts from the weights of a teacher. Validation and test
   sets are the corpus's own; pairs with a sentence of theirs are dropped.
5. Teachers, ensemble and students are scored on the validation set, the students with --test on the test sets.

A step that is done is not repeated: the same call continues where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.laboratory.harness.pages import PAIRED_BOOTSTRAP, p_value, provenance, table
from scripts.laboratory.harness.records import RECORDS, Record, describe, exit_code
from scripts.laboratory.harness.runs import train_all, translate_to
from scripts.tools import levers, levers_page
from seq2seq_attn.commands.train_runs import PlannedRun
from seq2seq_attn.config import Config, load_config
from seq2seq_attn.data.extra import without_extra
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import read_json, write_json, write_lines
from seq2seq_attn.metrics.bleu import CorpusStatistics, Measure
from seq2seq_attn.run_dir import RunDir
from seq2seq_attn.search.options import SearchOptions
from seq2seq_attn.text.corpus import read_lines

Pairs = list[tuple[str, str]]


def records() -> list[Record]:
    """Those that docs/quality.md shows."""
    return [read_json(path) for path in sorted(RECORDS.glob("distil*.json"))]


def train_seeds(prefix: Path, source: str, settings: Sequence[Sequence[str]], *, jobs: int) -> list[RunDir]:
    """Runs of a configuration with the seeds 1, 2, ..., each with settings of its own; finished ones are kept,
    interrupted ones resumed.

    Raises:
        UsageError: a run was started with other settings.
        UserError: training a seed failed.
    """
    planned = [
        PlannedRun.of(RunDir(prefix.with_name(f"{prefix.name}-s{seed}")), [source], [*of_seed, f"seed={seed}"])
        for seed, of_seed in enumerate(settings, 1)
    ]
    train_all(planned, jobs)
    return [one.run for one in planned]


def select(
    sources: Sequence[str],
    references: Sequence[str],
    candidates: Sequence[Sequence[str]],
    *,
    keep: int = 1,
    min_score: float = 0.0,
) -> tuple[Pairs, Record]:
    """The pairs that a student learns from besides the original ones, and the numbers of pairs dropped.

    Args:
        sources: of the training pairs.
        references: their targets.
        candidates: translations of each source, best first.
        keep: candidates per source, the closest to the reference by chrF first.
        min_score: candidates below this chrF are dropped.
    """
    flat = [(n, text) for n, texts in enumerate(candidates) for text in texts]
    statistics = Measure("chrf", [references[n] for n, _ in flat]).statistics([text for _, text in flat])
    of_source: list[list[tuple[float, str]]] = [[] for _ in sources]
    for (n, text), score in zip(flat, statistics.scores_of_sums(statistics.rows_ND).tolist(), strict=True):
        of_source[n].append((score, text))
    known = set(zip(sources, references, strict=True))
    pairs: Pairs = []
    dropped = {"blank": 0, "far_from_reference": 0, "repeated": 0}
    for source, scored in zip(sources, of_source, strict=True):
        for score, text in sorted(scored, key=lambda one: -one[0])[:keep]:
            if not text.strip():
                dropped["blank"] += 1
            elif score < min_score:
                dropped["far_from_reference"] += 1
            elif (source, text) in known:
                dropped["repeated"] += 1
            else:
                known.add((source, text))
                pairs.append((source, text))
    return pairs, dropped


def write_pairs(prefix: Path, languages: Sequence[str], pairs: Pairs) -> None:
    """Write the pairs as PREFIX.SOURCE and PREFIX.TARGET.

    Raises:
        UserError: the files exist and hold something else, from which a student may have been trained.
    """
    for side, language in enumerate(languages):
        path, lines = Path(f"{prefix}.{language}"), [pair[side] for pair in pairs]
        if not path.exists():
            write_lines(path, lines)
        elif read_lines(path) != lines:
            raise UserError(
                f"{path}: not the pairs that these options give; choose another --dir, or remove it and its students"
            )


def extra_of_student(teacher: Config, prefix: Path) -> list[str]:
    """The settings of a student's extra pairs: its teachers' own, then the distilled ones."""
    extra = json.dumps([*teacher.data.extra, str(prefix)])
    return [f"data.extra={extra}", f"data.extra_in_vocab={json.dumps(teacher.data.extra_in_vocab)}"]


def start_of_student(student: Config, teachers: Sequence[RunDir], seed: int) -> list[str]:
    """The setting that names the teacher a student starts from, in turn; none if its configuration has no start."""
    if student.train.start_from is None:
        return []
    return [f"train.start_from={teachers[(seed - 1) % len(teachers)].path}"]


def check_options(options: argparse.Namespace) -> SearchOptions:
    """Those of the ensemble's search. Called before anything is trained.

    Raises:
        UsageError: an option is out of range, or teachers and student do not read the same corpus.
        UserError: a teacher is not a run.
    """
    for name, least in (("seeds", 1), ("students", 0), ("jobs", 1), ("keep", 1)):
        if (value := getattr(options, name)) < least:
            raise UsageError(f"--{name} {value}: expected at least {least}")
    if options.keep > options.n_best:
        raise UsageError(f"--keep {options.keep}: expected at most --n-best {options.n_best}")
    teacher = options.teachers[0].config() if options.teachers else load_config([options.config], options.set)
    if len(teacher.data.sources) > 1:
        raise UsageError(f"{teacher.name}: reads several sources; distillation is of runs with a single one")
    student = load_config([options.student], options.set)
    if student.data.corpus != teacher.data.corpus:
        corpora = f"its corpus is {student.data.corpus}, that of the teachers {teacher.data.corpus}"
        raise UsageError(f"--student {options.student}: {corpora}")
    return SearchOptions.given(beam_size=options.beam_size, n_best=options.n_best, keep_attention=False)


def record_path(options: argparse.Namespace) -> Path:
    """The file of the record."""
    found: Path = options.record or options.dir / "record.json"
    return found


def distil(options: argparse.Namespace) -> Record | None:
    """All steps. Returns the record, or None without a student.

    Raises:
        UsageError: inconsistent options or settings.
        UserError: a run failed or cannot be read.
    """
    levers.check_chosen(options.test, options.chosen_on)
    search = check_options(options)
    teachers = options.teachers or train_seeds(
        options.dir / "teacher", options.config, [options.set] * options.seeds, jobs=options.jobs
    )
    levers.check_finished(teachers)
    config = teachers[0].config()
    sources, references = prepare_corpus(without_extra(config)).text("train")
    path = options.dir / "translations.jsonl"
    candidates = translate_to(path, teachers, sources, search, device=options.device)
    chosen = {"keep": options.keep, "min_score": options.min_score}
    pairs, dropped = select(sources, references, candidates, **chosen)
    prefix = options.dir / "distilled"
    write_pairs(prefix, (config.data.source_name, config.data.target_language), pairs)
    if not options.students:
        return None
    student = load_config([options.student], options.set)
    settings = [
        [*options.set, *extra_of_student(config, prefix), *start_of_student(student, teachers, seed)]
        for seed in range(1, options.students + 1)
    ]
    students = train_seeds(options.dir / "student", options.student, settings, jobs=options.jobs)
    record = {
        "what": "sequence-level distillation of an ensemble into one student",
        "config": config.name,
        "student": options.student,
        "set": options.set,
        **({"chosen_on": options.chosen_on} if options.chosen_on else {}),
        "beam_size": levers.BEAM_SIZE,
        "translation": {"beam_size": options.beam_size, "n_best": options.n_best, **chosen},
        "pairs": {"original": len(sources), "distilled": len(pairs), "dropped": dropped},
        **_scores(teachers, students, options),
        "environment": describe("scripts/distil"),
    }
    write_json(record_path(options), record)
    return record


def render(record: Record) -> list[str]:
    """The section of docs/quality.md: teachers, their ensemble, students."""
    pairs, translation = record["pairs"], record["translation"]
    nearest = "nearest" if translation["keep"] == 1 else f"{translation['keep']} nearest"
    lines = [
        f"## Distillation: `{record['student']}`",
        "",
        f"The ensemble translated the {pairs['original']:,} sources of the training pairs with beam "
        f"{translation['beam_size']}. It kept, of {translation['n_best']} hypotheses, the {nearest} to the reference "
        f"by chrF: {pairs['distilled']:,} new pairs; dropped: "
        + ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in pairs["dropped"].items())
        + f". Validation BLEU with beam {record['beam_size']}, `{record['ensemble']['signature']}`. "
        + provenance(record, "distil"),
        "",
    ]
    rows = [["ensemble of the teachers", "", f"{record['ensemble']['bleu']:.2f}", "", ""]]
    for label, runs in (("teachers", record["teachers"]), ("students", record["runs"])):
        values = [run["validation"]["bleu"] for run in runs]
        minutes = f"{sum(run['minutes'] for run in runs) / len(runs):.0f}"
        seeds = ", ".join(str(run["seed"]) for run in runs)
        scores = ", ".join(f"{value:.2f}" for value in values)
        rows.append([label, seeds, scores, f"{sum(values) / len(values):.2f}", minutes])
    gain = record["against"]
    lines += [*table(["", "seeds", "BLEU by seed", "mean", "minutes"], rows), ""]
    about = f"p {p_value(gain['p_value'])} by {PAIRED_BOOTSTRAP}"
    lines += [
        f"Students against teachers: {gain['gain']:+.2f}, {about}. Minutes: the mean over seeds, on a machine that "
        "did other work too.",
        "",
    ]
    if names := levers_page.test_names(record):
        lines += ["Test sets, translated once per student; mean ± SD over seeds:", ""]
        lines += [*table(["seeds", *names], [levers_page.test_cells(record, names)]), ""]
    return lines


def _scores(teachers: Sequence[RunDir], students: Sequence[RunDir], options: argparse.Namespace) -> Record:
    keep_in, device = options.dir / "hyps", options.device

    def validated(runs: Sequence[RunDir], name: str) -> CorpusStatistics:
        return levers.validate(runs, device=device, keep_in=keep_in / name)

    before = [validated([run], f"teacher-{number}") for number, run in enumerate(teachers, 1)]
    after = [validated([run], f"student-{number}") for number, run in enumerate(students, 1)]
    return {
        "teachers": [levers.entry(run, found) for run, found in zip(teachers, before, strict=True)],
        "ensemble": levers.score_entry(validated(teachers, "ensemble")),
        "runs": [
            levers.entry(run, found, test=options.test, device=device, keep_in=keep_in / f"student-{number}")
            for number, (run, found) in enumerate(zip(students, after, strict=True), 1)
        ],
        "against": levers.compared(before, after),
    }


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/distil", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--teachers", type=RunDir, nargs="+", metavar="RUN", help="finished runs, instead of --seeds")
    parser.add_argument("--config", default="multi30k", help="configuration of the teachers; default: %(default)s")
    parser.add_argument("--seeds", type=int, default=4, metavar="N", help="number of teachers; default: %(default)s")
    parser.add_argument(
        "--student", default="multi30k-distilled", help="configuration of the student; default: %(default)s"
    )
    parser.add_argument(
        "--students", type=int, default=1, metavar="N", help="number of students; 0: stop at the pairs; default: 1"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="settings of all runs")
    parser.add_argument("--dir", type=Path, default=Path("runs/distil"), help="runs and text; default: %(default)s")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs trained in parallel; default: 1")
    parser.add_argument(
        "--beam-size", type=int, default=5, metavar="N", help="beam size of the ensemble; default: %(default)s"
    )
    parser.add_argument(
        "--n-best", type=int, default=5, metavar="N", help="hypotheses per source; default: %(default)s"
    )
    parser.add_argument("--keep", type=int, default=1, metavar="N", help="pairs per source; default: %(default)s")
    parser.add_argument(
        "--min-score", type=float, default=0.0, metavar="X", help="drop pairs below this chrF (0 to 100); default: 0"
    )
    parser.add_argument("--test", action="store_true", help="also score the students on the test sets")
    parser.add_argument("--chosen-on", choices=levers.CHOSEN_ON, help="what the settings were chosen on")
    parser.add_argument("--record", type=Path, metavar="FILE", help="scores, as JSON; default: DIR/record.json")
    parser.add_argument("--device", default="auto", help="device for translation; default: %(default)s")
    return parser


def main() -> None:
    """Run what is missing, and print the scores."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    if record := distil(build_parser().parse_args()):
        print("\n".join(render(record)))


if __name__ == "__main__":
    sys.exit(exit_code(main))
