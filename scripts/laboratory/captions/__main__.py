"""Write corpora of captions as text: `python -m scripts.laboratory.captions [NAME]...`; without a
name, the embedded one."""

import sys
from pathlib import Path

from scripts.laboratory.captions.corpora import CORPORA

DATA = Path("data")


def main() -> None:
    names = sys.argv[1:] or ["captions"]
    for name in names:
        if name not in CORPORA:
            sys.exit(f"{name!r}: expected {', '.join(CORPORA)}")
    for name in names:
        CORPORA[name](DATA / name)
        print(DATA / name)


if __name__ == "__main__":
    main()
