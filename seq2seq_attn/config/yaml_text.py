"""Read YAML safely: no duplicate keys, no Python tags, limited depth and size; and write it."""

import re
from typing import Any

import yaml

MAX_DEPTH = 20
MAX_VALUES = 10_000
"""per text, with aliases expanded; the longest configuration has a few hundred"""


class _Loader(yaml.SafeLoader):
    """The plain values of YAML 1.2: `no` is a language code, `1e-3` a number, `1:30` and dates are
    text, `010` is not octal."""


class _Dumper(yaml.SafeDumper):
    """Quotes text that is another value in YAML 1.1 or 1.2."""


_FLOAT = re.compile(
    r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
    r"|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$"
)
_PATTERNS = {
    "bool": (re.compile("(true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    "int": (re.compile("[-+]?(0|[1-9][0-9]*)$"), "-+0123456789"),
    "float": (_FLOAT, "-+.0123456789"),
}
"""types of plain values, their patterns, and the characters that these begin with"""
_KEPT = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")

_Loader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] in _KEPT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _type, (_pattern, _first) in _PATTERNS.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_type}", _pattern, list(_first))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def dump_yaml(values: object) -> str:
    """Plain values as YAML, which `parse_yaml` reads back unchanged."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def parse_yaml(text: str) -> Any:
    """The values of a YAML text. Raises yaml.YAMLError: the text is not YAML, or not allowed in a
    configuration; the message names the line."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _count(node, {}, depth=0)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise yaml.YAMLError(f"{where}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise yaml.YAMLError(" ".join(str(error).split())) from None
    except RecursionError:
        raise yaml.YAMLError(f"nested more than {MAX_DEPTH} levels deep") from None
    except (ValueError, KeyError, AttributeError):  # for `!!int x`, `!!bool 3`, `!!timestamp x`
        raise yaml.YAMLError("a value does not have the type of its tag") from None


def _count(node: yaml.Node, counted: dict[yaml.Node, int], depth: int) -> int:
    """The number of values under a node. Each use of an alias counts: a few lines of them can
    expand to billions."""
    where = f"line {node.start_mark.line + 1}"
    if depth > MAX_DEPTH:
        raise yaml.YAMLError(f"{where}: nested more than {MAX_DEPTH} levels deep")
    if node not in counted:
        children: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            children += node.value
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            for key, value in node.value:
                children += [key, value]
        counted[node] = 1 + sum(_count(child, counted, depth + 1) for child in children)
    if counted[node] > MAX_VALUES:
        raise yaml.YAMLError(f"{where}: more than {MAX_VALUES:,} values")
    return counted[node]


def _check_keys(node: yaml.MappingNode) -> None:
    """Raises YAMLError if a key comes twice."""
    lines: dict[str, int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            line = key.start_mark.line + 1
            if key.value in lines:
                raise yaml.YAMLError(
                    f"line {line}: {key.value!r} is already set in line {lines[key.value]}"
                )
            lines[key.value] = line
