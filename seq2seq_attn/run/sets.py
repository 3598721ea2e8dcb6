"""Write and read the text of the validation and test sets that a run keeps."""

from pathlib import Path
from typing import NamedTuple

from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import ListedFiles, write_listed
from seq2seq_attn.text.captions import swap_links
from seq2seq_attn.text.tokenizers.base import SIDES, Side


class SetText(NamedTuple):
    """The text of a validation or test set."""

    source: list[str]
    references: list[str]
    links: list[str] | None
    """gold word alignments in Pharaoh format (`0-0 1-2`); None if the corpus has none"""


def write_sets(folder: Path, prepared: PreparedCorpus, sides: tuple[Side, Side]) -> None:
    """Write the text of all splits of a corpus except `train`. `sides` are the sides of the run
    that correspond to source and target of the corpus; the reverse model swaps them."""
    for split in prepared.splits[1:]:
        source, references = prepared.text(split)
        links = prepared.links(split)
        if sides != SIDES:
            source, references = references, source
            links = links and [swap_links(line) for line in links]
        for kind, lines in SetText(source, references, links)._asdict().items():
            if lines is not None:
                content = "".join(f"{line}\n" for line in lines)
                write_listed(folder / f"{split}.{kind}", content.encode())


def read_set(run: Path, folder: str, split: str) -> SetText:
    """Return the text of a split from a folder of the run. Raises UserError if the run does not
    keep the split, or if a file is damaged."""
    if not (run / folder).exists():
        raise UserError(
            f"{run}: keeps no test sets, like every run from the hub; give --source FILE "
            "--reference FILE"
        )
    files = ListedFiles(run / folder, within=run)

    def read_lines(kind: str) -> list[str]:
        return files.read(f"{split}.{kind}").decode(errors="replace").split("\n")[:-1]

    links = read_lines("links") if f"{split}.links" in files.listed else None
    text = SetText(read_lines("source"), read_lines("references"), links)
    if len({len(lines) for lines in text if lines is not None}) > 1:
        raise UserError(f"{files.folder}/{split}.*: numbers of lines differ; copy the run again")
    return text
