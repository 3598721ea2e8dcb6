"""YAML text to plain values: each key once, nothing too deep or too large, no tags of Python's own."""

from __future__ import annotations

from typing import Any

import yaml

MAX_DEPTH = 20
MAX_VALUES = 10_000
"""in one text, aliases written out: the longest configuration has some hundred"""


class YamlError(Exception):
    """The text is not YAML, or not what a configuration may be; the message says where."""


class _Loader(yaml.SafeLoader):
    """`no` is a language code, not false: as in YAML 1.2, only `true` and `false` are booleans."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool" or first in "tTfF"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_yaml(text: str) -> Any:
    """The values of a YAML text.

    Raises:
        YamlError: the text is not YAML, or not what a configuration may be.
    """
    try:
        loader: Any = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {}, depth=0)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise YamlError(f"{where}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split())) from None
    except RecursionError:
        raise YamlError(f"nested more than {MAX_DEPTH} levels deep") from None
    except (ValueError, KeyError, AttributeError):  # PyYAML's own, of `!!int x`, `!!bool 3`, `!!timestamp x`
        raise YamlError("a value is not of the type that its tag says") from None


def _count(node: yaml.Node, counted: dict[yaml.Node, int], depth: int) -> int:
    """The number of values under a node. An alias counts as often as it stands: a few lines of them can be billions."""
    if depth > MAX_DEPTH:
        raise YamlError(f"{_where(node)}nested more than {MAX_DEPTH} levels deep")
    if node not in counted:
        children = []
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            children = [child for pair in node.value for child in pair]
        elif isinstance(node, yaml.SequenceNode):
            children = node.value
        counted[node] = 1 + sum(_count(child, counted, depth + 1) for child in children)
    if counted[node] > MAX_VALUES:
        raise YamlError(f"{_where(node)}more than {MAX_VALUES:,} values")
    return counted[node]


def _check_keys(node: yaml.MappingNode) -> None:
    first: dict[tuple[str, str], yaml.Node] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        former = first.setdefault((key.tag, key.value), key)
        if former is not key:
            raise YamlError(f"{_where(key)}{key.value!r} is set already in line {former.start_mark.line + 1}")


def _where(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}: "
