"""Write every document that is made from records, or check that each says what the records say: see
`scripts/docs`."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from scripts.laboratory.harness.records import RECORDS, ROOT, SPEED, exit_code, load_records
from scripts.laboratory.pages import (
    bottleneck,
    index,
    mechanisms,
    notebooks,
    pictures,
    quality,
    reference,
    results,
    site,
    speed,
)
from scripts.laboratory.pages.render import BOTTLENECK, DOCS, render, replace_block
from seq2seq_attn.files import write_text

BLOCKS = {
    "own-text.md": {
        "languages": ("own-text-languages", "languages"),
        "finetune": ("own-text-finetune", "finetune"),
        "tasks": ("own-text-tasks", "own-texts"),
        "budgets": ("own-text-budgets", "budgets"),
        "shifts": ("own-text-shifts", "shifts"),
    },
    "serve.md": {"figures": ("serve", "serve")},
    "evaluate.md": {"error rates": ("evaluate", "null-comparison")},
    "choose.md": {"small race": ("choose", "small-race")},
}
"""the template and the record of each block that is written into a page"""


def documents() -> Iterator[tuple[Path, str]]:
    """Path and wanted text of each document."""
    evaluated = results.evaluations()
    yield ROOT / "README.md", readme()
    for page, blocks in BLOCKS.items():
        yield DOCS / page, with_blocks(page, blocks)
    yield DOCS / "results.md", results.results_page(evaluated)
    yield DOCS / "quality.md", quality.quality_page()
    yield DOCS / "mechanisms.md", mechanisms.mechanisms_page()
    yield BOTTLENECK / "README.md", bottleneck.bottleneck_page(load_records(BOTTLENECK))
    yield SPEED / "README.md", speed.speed_page(load_records(SPEED))
    yield from results.config_headers(evaluated)
    yield from reference.documents()


def readme() -> str:
    """README.md, with its blocks as the records have them."""
    evaluated = results.evaluations()
    values = {
        "demo": evaluated["demo"],
        "configurations": results.configurations(evaluated),
        "speed": load_records(SPEED),
    }
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("demo", "results", "speed"):
        text = replace_block(text, name, render(f"readme-{name}.md.j2", **values))
    return text


def with_blocks(page: str, blocks: Mapping[str, tuple[str, str]]) -> str:
    """A page of docs/ with each of its blocks as the template and the record of the block say."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for name, (template, record) in blocks.items():
        block = render(f"{template}.md.j2", record=load_records(RECORDS)[record])
        text = replace_block(text, name, block)
    return text


def problems() -> Iterator[str]:
    """A line for each document or picture that is not what the records say, and each record that
    says too little."""
    advice = "not what the records say; run scripts/docs"
    for path, text in documents():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield f"{path.relative_to(ROOT)}: {advice}"
    for picture in pictures.pictures():
        if not picture.is_current:
            yield f"{picture.path.relative_to(ROOT)}: {advice}"
    yield from quality.problems()


def main(arguments: Sequence[str]) -> int:
    """Write or check; the exit code."""
    match list(arguments):
        case []:
            write()
            return 0
        case ["check"]:
            return check()
        case ["learn"]:
            return site.execute()
        case ["notebooks"]:
            return notebooks.write()
        case ["site"]:
            site.execute()
            notebooks.write()
            return site.build()
        case ["index", repository, tag]:
            index.write(repository, tag)
            return 0
    text = " ".join(arguments)
    commands = "nothing, check, learn, notebooks, site or index"
    print(f"scripts/docs {text}: expected {commands}", file=sys.stderr)
    return 2


def write() -> None:
    """Write the documents, and the pictures that do not show their data."""
    for path, text in documents():
        write_text(path, text)
    for picture in pictures.pictures():
        if not picture.is_current:
            picture.draw()


def check() -> int:
    """Print the problems; 1 if there are any."""
    lines = list(problems())
    for line in lines:
        print(line, file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(sys.argv[1:])))
