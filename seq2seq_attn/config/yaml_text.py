"""Read YAML safely: no duplicate keys, no Python tags, limited depth and size; and write it."""

import json
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
    r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$"
)
_PLAIN = (
    ("bool", re.compile("(true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    ("int", re.compile("[-+]?(0|[1-9][0-9]*)$"), "-+0123456789"),
    ("float", _FLOAT, "-+.0123456789"),
)
"""types of plain values, their patterns, and the characters that these begin with"""

_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("null", "merge")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _type, _pattern, _first in _PLAIN:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_type}", _pattern, list(_first))
# JSON writes a character beyond U+FFFF as two escapes, which PyYAML does not join.
_Loader.add_constructor(
    "tag:yaml.org,2002:str",
    lambda loader, node: json.loads(json.dumps(loader.construct_scalar(node))),  # type: ignore[arg-type]
)
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def dump_yaml(values: object) -> str:
    """Plain values as YAML, which `parse_yaml` reads back unchanged."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def parse_yaml(text: str) -> Any:
    """The values of a YAML text. Raises yaml.YAMLError: the text is not YAML, or not allowed in a
    configuration; the message names the line."""
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
        raise yaml.YAMLError(f"{where}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise yaml.YAMLError(" ".join(str(error).split())) from None
    except RecursionError:
        raise yaml.YAMLError(f"nested more than {MAX_DEPTH} levels deep") from None
    except (
        ValueError,
        KeyError,
        AttributeError,
    ):  # raised by PyYAML for `!!int x`, `!!bool 3`, `!!timestamp x`
        raise yaml.YAMLError("a value does not have the type of its tag") from None


def _count(node: yaml.Node, counted: dict[yaml.Node, int], depth: int) -> int:
    """The number of values under a node. Each use of an alias counts: a few lines of them can
    expand to billions."""
    where = f"line {node.start_mark.line + 1}: "
    if depth > MAX_DEPTH:
        raise yaml.YAMLError(f"{where}nested more than {MAX_DEPTH} levels deep")
    if node not in counted:
        children = node.value if isinstance(node, yaml.SequenceNode) else []
        if isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
            keys: dict[str, yaml.Node] = {}
            for key in children[::2]:
                if (
                    isinstance(key, yaml.ScalarNode)
                    and (first := keys.setdefault(key.value, key)) is not key
                ):
                    line, first_line = key.start_mark.line + 1, first.start_mark.line + 1
                    raise yaml.YAMLError(
                        f"line {line}: {key.value!r} is already set in line {first_line}"
                    )
        counted[node] = 1 + sum(_count(child, counted, depth + 1) for child in children)
    if counted[node] > MAX_VALUES:
        raise yaml.YAMLError(f"{where}more than {MAX_VALUES:,} values")
    return counted[node]
