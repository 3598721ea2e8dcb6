"""Write corpora of captions as text: `python -m scripts.laboratory.captions [NAME]...`; without a
name, the embedded one."""

import argparse
from pathlib import Path

from scripts.laboratory.captions.corpora import CORPORA


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.laboratory.captions",
        description="Write corpora of captions as text.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", default=["captions"], help=", ".join(CORPORA)
    )
    parser.add_argument(
        "--dir", type=Path, default=Path("data"), help="folder of the corpora; default: %(default)s"
    )
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in CORPORA]:
        parser.error(f"{unknown[0]!r}: expected {', '.join(CORPORA)}")
    for name in options.names:
        CORPORA[name](options.dir / name)
        print(options.dir / name)


if __name__ == "__main__":
    main()
