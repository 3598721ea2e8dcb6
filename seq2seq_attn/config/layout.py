"""The columns of a source line, which are separated by tabs. A column is a text or the name of a
file of vectors."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

NONE = "none"
"""The "language" that a configuration names for a language model, which has no source."""
VECTORS = "vectors"
"""The "language" that a configuration names for a source of vectors instead of text."""


@dataclass(frozen=True)
class SourceLayout:
    """The columns of a source line, by the languages that the configuration names.

    Only this class interprets the languages `none` and `vectors`.
    """

    languages: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """Return the language of each column. A language model has no columns, and its source lines
        are blank."""
        return [language for language in self.languages if language != NONE]

    @property
    def texts(self) -> list[str]:
        """Return the languages of the columns that are text."""
        return [language for language in self.columns if language != VECTORS]

    @property
    def vector_column(self) -> int | None:
        """Return the index of the column that names files of vectors, or None if all columns are
        text."""
        return self.languages.index(VECTORS) if VECTORS in self.languages else None

    @property
    def is_one_text(self) -> bool:
        """Return whether a source line is a single text."""
        return len(self.languages) == len(self.texts) == 1

    def vector_sizes(self, size: int | None) -> list[int | None]:
        """Return a list with `size` for a source of vectors and None for any other source. `size`
        is the dimension of the vectors."""
        return [size if language == VECTORS else None for language in self.languages]

    def split(self, line: str) -> list[str]:
        """Split a line into columns at tabs. A single column may contain tabs."""
        return line.split("\t") if len(self.columns) > 1 else [line]

    def vector_files(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the file of vectors that each line names. Blank lines are skipped. Nothing is
        yielded if all columns are text."""
        if self.vector_column is not None:
            for line in lines:
                if line.strip():
                    yield self.split(line)[self.vector_column].strip()
