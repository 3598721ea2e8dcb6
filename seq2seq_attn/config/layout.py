"""The columns of a source line: texts and files of vectors, separated by tabs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

NONE = "none"
"""The "language" of the source of a language model, which has none."""
VECTORS = "vectors"
"""The "language" of a source that is a file of vectors."""


@dataclass(frozen=True)
class SourceLayout:
    """The columns of a source line by their languages, as the configuration names them. Only this
    class knows the names `none` and `vectors`."""

    languages: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """The language of each column; empty for a language model, whose source lines are blank."""
        return [language for language in self.languages if language != NONE]

    @property
    def texts(self) -> list[str]:
        """The languages of the columns that are text."""
        return [language for language in self.columns if language != VECTORS]

    @property
    def vector_column(self) -> int | None:
        """The index of the column that names files of vectors; None: all columns are text."""
        return self.languages.index(VECTORS) if VECTORS in self.languages else None

    @property
    def is_one_text(self) -> bool:
        """Whether a line is a single text."""
        return len(self.languages) == len(self.texts) == 1

    def vector_sizes(self, size: int | None) -> list[int | None]:
        """For each source, the dimension of its vectors, which is `size`; None for text."""
        return [size if language == VECTORS else None for language in self.languages]

    def split(self, line: str) -> list[str]:
        """The columns of a line. A tab in a line of one column is text."""
        return line.split("\t") if len(self.columns) > 1 else [line]

    def vector_files(self, lines: Iterable[str]) -> Iterator[str]:
        """The file of vectors that each line names, unless the line is blank. Yields nothing if all
        columns are text."""
        if self.vector_column is not None:
            for line in lines:
                if line.strip():
                    yield self.split(line)[self.vector_column].strip()
