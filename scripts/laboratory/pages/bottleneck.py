"""docs/bottleneck/README.md: how much BLEU is left on long sentences with attention, with K vectors
or with one."""

from collections.abc import Mapping

from scripts.laboratory.harness.records import Record
from scripts.laboratory.pages.render import count_of, origins, render


def bottleneck_page(records: Mapping[str, Record]) -> str:
    """The text of the page."""
    rows = origins(records)
    return render("bottleneck.md.j2", records=records, seeds=seeds_per_arm, origins=rows)


def seeds_per_arm(record: Record) -> str:
    """The number of seeds that most arms have, and in brackets that of the others."""
    counts: dict[int, list[str]] = {}
    for arm in record["arms"]:
        counts.setdefault(len(arm["seeds"]), []).append(arm["name"])
    most = max(counts, key=lambda count: len(counts[count]))
    remarks = []
    for count, names in sorted(counts.items()):
        if count != most:
            remarks.append(f"{count} of {', '.join(names)}")
    text = f"{count_of(most, 'seed')} per arm"
    return f"{text} ({'; '.join(remarks)})" if remarks else text
