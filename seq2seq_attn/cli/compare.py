"""`seq2seq compare`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Unpack

from yaml import YAMLError

from seq2seq_attn.cli import options as shared
from seq2seq_attn.config.yaml_text import parse_yaml
from seq2seq_attn.errors import UsageError

MAX_SEEDS = 1_000
"""maximum number of seeds in a range"""


class CompareOptions(shared.ConfigOptions, total=False):
    """Options of the command."""

    vary: Annotated[
        list[str],
        shared.option(
            "KEY=VALUE,...",
            "A setting and its values, for example attention=additive,bilinear; may be repeated "
            "for combinations.",
        ),
    ]
    seeds: Annotated[str, shared.option("N-M|N,...", "Seeds of every variant.", default="1-3")]
    output: Annotated[
        Path, shared.option("DIR", "Folder for runs and report.", default="runs/compare-<config>")
    ]
    at_once: Annotated[
        int,
        shared.option(
            "N", "Runs trained in parallel.", default="one per core, one on a GPU", min=1
        ),
    ]
    device: shared.Device
    precision: shared.TrainingPrecision
    imports: shared.Import


@shared.command()
def compare(**options: Unpack[CompareOptions]) -> None:
    """Train variants with several seeds and compare their scores.

    Prints the path of the report. Finished runs are kept and interrupted runs resumed: after
    Ctrl-C, the same command continues.
    """
    from seq2seq_attn.api import compare as api

    arguments = shared.python_arguments(options)
    arguments["vary"] = parse_variations(options.get("vary", []))
    arguments["seeds"] = parse_seeds(options.get("seeds", "1-3"))
    shared.echo(api.compare(**arguments))


def parse_variations(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Return the values of each setting, parsed from texts `KEY=VALUE,VALUE,...`. Raises UsageError
    if the values of a text are not YAML or a key occurs twice."""
    variations = {}
    for text in texts:
        key, _, listed = text.partition("=")
        key = key.strip()
        if key in variations:
            raise UsageError(f"--vary {key}: given twice; name all its values in one option")
        try:
            variations[key] = parse_yaml(f"[{listed}]")
        except YAMLError as error:
            raise UsageError(f"--vary {text}: not a list of values ({error})") from None
    return variations


def parse_seeds(text: str) -> list[int]:
    """Return the distinct seeds in a text such as `1-3` or `1,2,5`. Raises UsageError if the text
    has another form, or a range descends or has more than `MAX_SEEDS` seeds."""
    error = UsageError(
        f"--seeds {text}: expected seeds such as 1-3 or 1,2,5; a range ascends and has at most "
        f"{MAX_SEEDS:,}"
    )
    seeds: list[int] = []
    for item in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*", item, re.ASCII)
        if match is None:
            raise error
        first = int(match[1])
        last = int(match[2] or match[1])
        if not first <= last < first + MAX_SEEDS:
            raise error
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))
