"""Documents as inputs of `translate`."""

from collections.abc import Sequence

from seq2seq_attn.api.streams import STREAM
from seq2seq_attn.errors import UserError
from seq2seq_attn.text.documents.kinds import TABLE, Kind, kind_by_content, kind_by_name


def check_names(names: Sequence[str], num_sources: int) -> None:
    """Raise UserError if the suffix of an input file is that of a document. A run with several
    sources reads a table of tab-separated lines."""
    for name in names:
        kind = kind_by_name(name)
        is_tsv = kind is TABLE and not name.endswith(".csv")
        if kind is not None and not (is_tsv and num_sources > 1):
            raise _not_lines(name, kind)


def check_content(name: str, head: str) -> None:
    """Raise UserError if the first lines of an input are those of a document."""
    kind = kind_by_content(head)
    if kind is not None:
        raise _not_lines(name, kind)


def _not_lines(name: str, kind: Kind) -> UserError:
    """Return the error for a document in place of lines of text."""
    shown = "standard input" if name == STREAM else name
    return UserError(
        f"{shown}: {kind.name}, not a sentence per line; write its text into a file of lines, or "
        "translate its lines as they are with --document lines"
    )
