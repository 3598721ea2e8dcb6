"""docs/speed/README.md: speed against other toolkits, on a GPU, and what each piece of speed code
is worth."""

from collections.abc import Iterator, Mapping, Sequence

from scripts.laboratory.benchmarks.fast import IN_SEARCH, IN_TRAINING
from scripts.laboratory.harness.records import Record
from scripts.laboratory.pages import race
from scripts.laboratory.pages.render import origins, render

ABOUT = {
    "hand-written unroll": "forward and backward pass of the decoder's recurrence",
    "loss that makes its own gradient": "computes logits in chunks, which also saves memory",
    "all of these": "the pieces of training together",
    "prepared steps": "search with weights and keys rearranged once",
    "packed products": "weights of search in oneDNN's own layout",
}
"""pieces of `seq2seq_attn/model/fast`"""
IN_PACKAGE = IN_TRAINING.keys() | IN_SEARCH.keys()
"""those that the benchmark of today's package measures"""


def speed_page(speed_records: Mapping[str, Record]) -> str:
    """The text of the page."""
    records = dict(speed_records)
    shown = dict(speed_records)
    raced = race.race()
    records["race"] = raced | {"leads": race.leads(raced)}
    shown["../records/race"] = raced
    measured = [records["fast"], records["fast-again"]]
    return render(
        "speed.md.j2",
        records=records,
        machines=[record["environment"]["device_name"] for record in measured],
        pieces=[
            [name, ABOUT[name], *gains(name, measured)] for name in ABOUT if name in IN_PACKAGE
        ],
        deleted=list(deleted_pieces(measured)),
        origins=origins(shown),
    )


def gains(piece: str, records: Sequence[Record]) -> Iterator[str]:
    """The least and the greatest gain of a piece in each record."""
    for record in records:
        values = [row[piece] for row in record["rows"].values() if piece in row]
        yield f"{min(values):.2f} to {max(values):.2f}" if values else ""


def deleted_pieces(records: Sequence[Record]) -> Iterator[str]:
    """The pieces of the records that the package does not have any more, with their gains."""
    names: dict[str, None] = {}
    for record in records:
        for row in record["rows"].values():
            names |= dict.fromkeys(row)
    for name in names:
        if name not in IN_PACKAGE:
            ranges = " and ".join(filter(None, gains(name, records)))
            yield f"{name} ({ranges})"
