"""Translations by other programs, read from files and scored like translations by runs."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.evaluation.test_sets import EvaluationSet, Languages, check_lines
from seq2seq_attn.evaluation.translations import SetTranslations
from seq2seq_attn.text.languages import CODE
from seq2seq_attn.text.lines import plain_name, read_lines
from seq2seq_attn.text.normalize import one_line


class HypothesisFile(NamedTuple):
    """A file of translations, one per line."""

    name: str
    path: Path

    def describe(self) -> dict[str, Any]:
        """Return a description for reports."""
        return {"name": self.name, "path": str(self.path)}

    def read(self, test_set: EvaluationSet) -> SetTranslations:
        """Read the translations of a set. Raises UserError if the file is a document or table, or
        if the number of lines is not the number of source lines."""
        check_lines(self.path)
        lines = [one_line(line) for line in read_lines(self.path)]
        if len(lines) != len(test_set.source):
            raise UserError(
                f"{self.path}: {len(lines):,} lines; {test_set.name} has {len(test_set.source):,}"
            )
        return SetTranslations(lines, no_map="its translations were read from a file")


def find_hypotheses(names: Iterable[str], taken: Sequence[str]) -> list[HypothesisFile]:
    """Return the files of translations that the user names as FILE or NAME=FILE.

    Args:
        names: The values of `--hypotheses`.
        taken: The names of other systems.

    Raises:
        UsageError: Two systems have the same name.
    """
    files: list[HypothesisFile] = []
    for value in names:
        name, _, path = value.rpartition("=")
        if Path(value).is_file():  # the name of a file may contain "="
            name = ""
            path = value
        name = name or Path(path).stem
        if name in [*taken, *(file.name for file in files)]:
            raise UsageError(f"--hypotheses {value}: {name!r} is named twice; write NAME=FILE")
        files.append(HypothesisFile(name, Path(path)))
    return files


def languages_by_suffix(paths: Sequence[Path]) -> Languages:
    """Return the languages of a source file and a file of references. The suffixes of the files'
    names are the codes of the languages.

    Raises:
        UsageError: A suffix is not the code of a language.
    """
    codes = [plain_name(path).rpartition(".")[2] for path in paths]
    for path, code in zip(paths, codes, strict=True):
        if not CODE.fullmatch(code):
            raise UsageError(
                f"{path}: scores depend on the language; end its name in the code of its language, "
                f"as in {path.stem}.en, or name a run too"
            )
    return Languages(*codes)
