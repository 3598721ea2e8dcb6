"""The reference pages of docs/, written from the code: settings and commands."""

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic_core import PydanticUndefined
from typer.main import get_command

from scripts.laboratory.harness.records import ROOT, Record
from scripts.laboratory.pages.render import DOCS, render
from seq2seq_attn.cli import PROGRAM, app
from seq2seq_attn.config import Config
from seq2seq_attn.config.types import Section

WIDTH = 100
"""columns of the help texts"""
HUGE = 2**31 - 1
"""bounds from here on only guard against typos and are not shown"""


def documents() -> Iterator[tuple[Path, str]]:
    """Each generated page: its path and its text."""
    commands: Any = get_command(app)
    helps = []
    for name, command in commands.commands.items():
        context = command.context_class(
            command, info_name=f"{PROGRAM} {name}", terminal_width=WIDTH
        )
        helps.append(
            (name, "\n".join(line.rstrip() for line in command.get_help(context).splitlines()))
        )
    yield DOCS / "commands.md", render("commands.md.j2", commands=helps)
    values: Record = {"configurations": configurations(), "sections": sections(Config)}
    yield DOCS / "configuration.md", render("configuration.md.j2", **values)


def configurations() -> Iterator[list[str]]:
    """A row per configuration of configs/: its name, and the first sentence of the comment at its
    top."""
    for path in sorted((ROOT / "configs").glob("*.yaml")):
        lines = itertools.takewhile(
            lambda line: line.startswith("# "), path.read_text(encoding="utf-8").splitlines()
        )
        comment = " ".join(line.removeprefix("# ") for line in lines)
        yield [
            f"[`{path.stem}`](../configs/{path.name})",
            re.split(r"(?<=\.)\s", comment)[0].rstrip(".:"),
        ]


def sections(
    section: type[Section], prefix: str = ""
) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """A section and those inside it: the key, the wrapped paragraphs of the docstring, the rows of
    its table."""
    key, paragraphs = prefix.rstrip("."), inspect.cleandoc(section.__doc__ or "").split("\n\n")
    wrapped = [
        textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False)
        for text in paragraphs
    ]
    rows = [*setting_rows(key, section)]
    width = 4 if any(meaning for *_, meaning in rows) else 3
    yield key, wrapped, [row[:width] for row in rows]
    for name, field in section.model_fields.items():
        for inner in (field.annotation, *get_args(field.annotation)):
            if inspect.isclass(inner) and issubclass(inner, Section):
                is_mapping = field.annotation is not inner
                yield from sections(inner, f"{prefix}{name}.{'NAME.' if is_mapping else ''}")


def setting_rows(key: str, section: type[Section]) -> Iterator[list[str]]:
    """A row per setting of the section itself; its meaning is the string below the field, as one
    line."""
    meanings = field_docstrings(section)
    for name, schema in section.model_json_schema()["properties"].items():
        if "$ref" in schema:
            continue
        default = section.model_fields[name].default
        shown = "" if default is PydanticUndefined else as_yaml(schema.get("default"))
        yield [
            f"`{key}.{name}`".replace("`.", "`"),
            in_words(schema),
            shown,
            meanings.get(name, ""),
        ]


def field_docstrings(described: type) -> dict[str, str]:
    """The string below each field of a class, as one line."""
    [node] = ast.parse(textwrap.dedent(inspect.getsource(described))).body
    assert isinstance(node, ast.ClassDef)
    docstrings = {}
    for field, text in itertools.pairwise(node.body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            docstrings[field.target.id] = " ".join(str(text.value.value).split())
    return docstrings


def in_words(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"anyOf": kinds}:
            return ", or ".join(dict.fromkeys(in_words(kind) for kind in kinds))
        case {"enum": values}:
            return ", ".join(f"`{value}`" for value in values)
        case {"const": value}:
            return f"`{value}`"
        case {"type": "string", "format": "path"}:
            return "path"
        case {"type": "array", "items": items}:
            return f"list of {in_words(items)}"
        case {"type": "integer" | "number" as kind}:
            return f"{kind}{bounds(schema)}"
    names = {
        "string": "text",
        "boolean": "true or false",
        "object": "mapping",
        "array": "list of numbers",
    }
    return names.get(schema["type"], str(schema["type"]))


def bounds(schema: Mapping[str, Any]) -> str:
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = [
        f"{word} {schema[key]:,}"
        for key, word in words.items()
        if abs(schema.get(key, HUGE)) < HUGE
    ]
    return " " + " and ".join(limits) if limits else ""


def as_yaml(value: Any) -> str:
    text = (
        yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("...\n").strip()
    )
    return f"`{text}`"
