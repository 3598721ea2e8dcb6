"""Find the output files of an evaluation: files that the user names, or files in the first run."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from seq2seq_attn.errors import UserError
from seq2seq_attn.evaluation.systems import ENSEMBLE_HYPS, System
from seq2seq_attn.files import check_writable
from seq2seq_attn.report.files import check_report_files

log = logging.getLogger(__name__)


class Outputs(NamedTuple):
    """The files of a report by kind, and whether the user named them."""

    files: Mapping[str, Path]
    is_named: bool

    def find_hyps_dirs(self, systems: Sequence[System]) -> list[Path | None]:
        """Return a folder for the translations of each system.

        The folder is in the directory of the run. If the user names a JSON file, the folder is
        beside this file. Translations are saved only beside a JSON file on disk; otherwise each
        folder is None.
        """
        file = self.files.get("json")
        # The JSON may go to a device or a pipe, such as `/dev/stdout`, which has no folder.
        if file is None or (file.exists() and not file.is_file()):
            return [None] * len(systems)
        if not self.is_named:
            return [system.hyps_dir for system in systems]
        names = []
        for system in systems:
            run_name = system.runs[0].path.resolve().name
            names.append(ENSEMBLE_HYPS if system.is_ensemble else run_name)
        if len(set(names)) < len(names):
            names = [f"{name}-{number}" for number, name in enumerate(names, start=1)]
        folder = file.with_name(f"{file.name.removesuffix('.json')}.hyps")
        return [folder / name for name in names]


def find_outputs(
    named: Mapping[str, str | Path | None],
    inputs: Sequence[Path],
    words: Sequence[str],
    systems: Sequence[System],
) -> Outputs:
    """Check the files that the user names, or else choose files in the first run. Without a run,
    there are no files.

    Args:
        named: the files that the user names, by kind; None for a kind that is not written.
        inputs: the files that are read.
        words: words that say what is evaluated, such as `valid`; default file names contain these
            words.
        systems: the systems that are evaluated.

    Raises:
        UsageError, UserError: a named file cannot be written (`check_report_files`).
    """
    files = {kind: Path(path) for kind, path in named.items() if path is not None}
    if files:
        check_report_files(files, inputs)
        return Outputs(files, is_named=True)
    if systems:
        files = _choose_files(systems, words)
    return Outputs(files, is_named=False)


def _choose_files(systems: Sequence[System], words: Sequence[str]) -> dict[str, Path]:
    """Return the default output files by kind, in the directory of the first run. Return no files,
    and log a warning, if a file cannot be written there.

    An evaluation of one run on its test sets writes `report.json` and `report.md` in the run's
    directory. Every further evaluation has a name that says how it differs, so that it does not
    replace these files: `report.comparison.md` for several runs, `report.valid.md` for the
    validation set, and `report.files.news.de.md` for a file `news.de`.
    """
    singles = [system for system in systems if not system.is_ensemble]
    kind = "report.comparison" if len(singles) > 1 else "report"
    name = ".".join([kind, *words]) + systems[0].variation
    folder = systems[0].runs[0].path
    files = {"json": folder / f"{name}.json", "report": folder / f"{name}.md"}
    if files["json"].exists():
        log.info("%s: replaced; to keep both, add --json FILE", files["json"])
    try:
        for file in files.values():
            check_writable(file)
    except UserError as error:
        log.warning("%s; the scores are shown, not saved: --json FILE saves them elsewhere", error)
        return {}
    return files
