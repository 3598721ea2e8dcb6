"""docs/api.md: the Python API, written from docstrings."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import seq2seq_attn
from scripts.laboratory.pages.reference import field_docstrings
from scripts.laboratory.pages.render import render

METHODS = {
    "Translator": ["translate", "translate_n_best", "translate_lines", "score"],
    "Translation": ["links", "attention_map", "plot"],
    "AttentionMap": [],
}
"""the classes of the API with the methods that the page explains, in its order"""
FUNCTIONS = [
    "load",
    "translate_document",
    "train_model",
    "evaluate",
    "compare",
    "import_variants",
]


class Documentation(NamedTuple):
    """The parts of a docstring."""

    text: str
    """its paragraphs as Markdown, with examples as blocks of code"""
    arguments: dict[str, str]
    errors: dict[str, str]


def api_page() -> str:
    """The text of docs/api.md."""
    entries = [entry(name, getattr(seq2seq_attn, name)) for name in FUNCTIONS]
    for class_name, methods in METHODS.items():
        described = getattr(seq2seq_attn, class_name)
        entries.append(class_entry(described))
        for method in methods:
            entries.append(entry(f"{class_name}.{method}", getattr(described, method)))
    return render("api.md.j2", entries=entries)


def entry(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """A section about a function or a method."""
    documentation = parse(inspect.getdoc(function) or "")
    return {"name": name, "signature": signature(name, function), **documentation._asdict()}


def class_entry(described: type) -> dict[str, Any]:
    """A section about a class: its fields in place of arguments."""
    documentation = parse(inspect.getdoc(described) or "")
    fields = field_docstrings(described)
    entry = {"name": described.__name__, "signature": "", **documentation._asdict()}
    return entry | {"arguments": fields}


def signature(name: str, function: Callable[..., Any]) -> str:
    """The call, with the defaults of its parameters and without their types."""
    plain = inspect.signature(function)
    parameters = []
    for parameter in plain.parameters.values():
        if parameter.name != "self":
            parameters.append(parameter.replace(annotation=inspect.Parameter.empty))
    returned = plain.return_annotation
    result = returned if isinstance(returned, str) else returned.__name__
    plain = plain.replace(parameters=parameters, return_annotation=inspect.Signature.empty)
    text = re.sub(r"Resampling\(.*?\)", "Resampling()", str(plain))
    return f"{name}{text} -> {result}"


def parse(docstring: str) -> Documentation:
    """The parts of a docstring."""
    text, *sections = re.split(r"^(Args|Raises):\n", docstring, flags=re.MULTILINE)
    items: dict[str, dict[str, str]] = {"Args": {}, "Raises": {}}
    items |= dict(zip(sections[::2], map(parse_items, sections[1::2]), strict=True))
    return Documentation("\n\n".join(paragraphs(text)), items["Args"], items["Raises"])


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a docstring as Markdown."""
    for paragraph in text.strip().split("\n\n"):
        if paragraph.startswith(">>>"):
            lines = re.sub(r"\s+# doctest: \+SKIP$", "", paragraph, flags=re.MULTILINE)
            yield f"```pycon\n{lines}\n```"
        else:
            yield " ".join(paragraph.split())


def parse_items(section: str) -> dict[str, str]:
    """The items of a section: `name: text`, with further lines indented deeper."""
    items: dict[str, str] = {}
    for item in re.split(r"^    (?=\S)", section, flags=re.MULTILINE)[1:]:
        name, _, text = item.partition(": ")
        items[name] = " ".join(text.split())
    return items
