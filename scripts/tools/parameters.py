"""Print the number of parameters of configurations.

Without arguments: the arms that the documents compare. Vocabulary sizes are those of the prepared captions, or the
limits of the configuration.
"""

from __future__ import annotations

import argparse

from seq2seq_attn.config import load_config
from seq2seq_attn.model.build import build_model, count_parameters

CAPTIONS, MULTI30K = (900, 700), (5500, 4000)
"""source and target ids"""
ARMS = {
    "quickstart": CAPTIONS,
    "quickstart-fixed": CAPTIONS,
    "multi30k": MULTI30K,
    "multi30k-fixed": MULTI30K,
}


def main() -> None:
    """A line per configuration."""
    parser = argparse.ArgumentParser(prog="scripts/parameters", description=__doc__)
    parser.add_argument("configs", nargs="*", metavar="CONFIG[+OVERLAY...]")
    names = parser.parse_args().configs
    for name, (source, target) in (dict.fromkeys(names, MULTI30K) or ARMS).items():
        model = build_model(load_config(name.split("+")).model, num_source_ids=source, num_target_ids=target)
        print(f"{name:24} {count_parameters(model):>10,} parameters  ({source} source ids, {target} target ids)")


if __name__ == "__main__":
    main()
