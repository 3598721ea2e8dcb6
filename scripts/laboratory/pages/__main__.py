"""Write every document that is made from records, or check that each says what the records say: see
`scripts/docs`."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.laboratory import languages
from scripts.laboratory.harness.records import RECORDS, ROOT, SPEED, exit_code, load_records
from scripts.laboratory.pages import mechanisms, pictures, quality, race, reference, results, site
from scripts.laboratory.pages.render import (
    BOTTLENECK,
    DOCS,
    render,
    replace_block,
    with_hand_written,
)
from seq2seq_attn.files import write_text


def documents() -> Iterator[tuple[Path, str]]:
    """Path and wanted text of each document."""
    yield ROOT / "README.md", readme()
    yield languages.PAGE, languages.own_text_page()
    yield DOCS / "serve.md", serve_page()
    evaluated = results.evaluations()
    pages = {
        DOCS / "results.md": results.results_page(evaluated),
        DOCS / "quality.md": quality.quality_page(),
        BOTTLENECK / "README.md": results.bottleneck_page(),
        SPEED / "README.md": speed_page(),
        DOCS / "mechanisms.md": mechanisms.mechanisms_page(),
    }
    yield from ((path, with_hand_written(text, path)) for path, text in pages.items())
    yield from results.config_headers(evaluated)
    yield from reference.documents()


def readme() -> str:
    evaluated = results.evaluations()
    values = {
        "demo": evaluated["demo"],
        "configurations": results.configurations(evaluated),
        "speed": load_records(SPEED),
        "num_raced": len(race.finished(raced)) if (raced := race.race()) else 0,
    }
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in ("demo", "results", "speed"):
        block = render(f"readme-{name}.md.j2", **values)
        text = replace_block(
            text, f"<!-- {name}: written by scripts/docs -->", f"<!-- end of {name} -->", block
        )
    return text


def speed_page() -> str:
    raced = race.race()
    values = {"leads": race.leads(raced), "finished": race.finished(raced)} if raced else {}
    records = load_records(SPEED) | ({"race": raced | values} if raced else {})
    return render("speed.md.j2", records=records)


def serve_page() -> str:
    block = render("serve.md.j2", record=load_records(RECORDS)["serve"])
    text = (DOCS / "serve.md").read_text(encoding="utf-8")
    return replace_block(
        text, "<!-- figures: written by scripts/docs -->", "<!-- end of figures -->", block
    )


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
    if arguments == ["check"]:
        lines = list(problems())
        print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr)
        return 1 if lines else 0
    if arguments in (["learn"], ["site"]):
        return site.execute() if arguments == ["learn"] else site.build()
    if arguments:
        print(
            f"scripts/docs {' '.join(arguments)}: expected nothing, check, learn or site",
            file=sys.stderr,
        )
        return 2
    for path, text in documents():
        write_text(path, text)
    for picture in pictures.pictures():
        if not picture.is_current:
            picture.draw()
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(lambda: main(sys.argv[1:])))
