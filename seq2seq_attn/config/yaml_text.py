"""Read and write YAML. Reading rejects duplicate keys, aliases, Python tags, and texts beyond a
maximum depth and size."""

import re
from typing import Any

import yaml

MAX_DEPTH = 20
MAX_VALUES = 10_000
"""The maximum number of values in a text. The longest configuration has a few hundred values."""


class _Loader(yaml.SafeLoader):
    """A loader that reads plain values as in YAML 1.2, rather than YAML 1.1: `no` is text (a
    language code), `1e-3` is a number, `1:30` and dates are text, and `010` is not octal. It stops
    at too many values, because a list of a megabyte would take many seconds."""

    num_values = 0
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next value. Raises YAMLError if there are too many values, if values are
        nested too deeply, if a key occurs twice, or if the value is an alias. A few lines with
        aliases can stand for billions of values."""
        where = f"line {self.line + 1}"
        self.num_values += 1
        self.depth += 1
        if self.num_values > MAX_VALUES:
            raise yaml.YAMLError(f"{where}: more than {MAX_VALUES:,} values")
        if self.depth > MAX_DEPTH:
            raise yaml.YAMLError(f"{where}: nested more than {MAX_DEPTH} levels deep")
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError(f"{where}: an alias (*); write its value instead")
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
        return node


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes text which YAML 1.1 or 1.2 would read as a value of another type."""


_FLOAT = re.compile(
    r"[-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
    r"|[-+]?\.(inf|Inf|INF)$|\.(nan|NaN|NAN)$"
)
_PATTERNS = {
    "bool": (re.compile("(true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    "int": (re.compile("[-+]?(0|[1-9][0-9]*)$"), "-+0123456789"),
    "float": (_FLOAT, "-+.0123456789"),
}
"""For each type of plain values, a pattern and the possible first characters."""
_NULL = "tag:yaml.org,2002:null"

_Loader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] == _NULL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _type, (_pattern, _first) in _PATTERNS.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_type}", _pattern, list(_first))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def dump_yaml(values: object) -> str:
    """Return plain values as YAML. `parse_yaml` reads the text back unchanged."""
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def parse_yaml(text: str) -> Any:
    """Return the values of a YAML text.

    Raises yaml.YAMLError if the text is not YAML or not allowed in a configuration. The message
    names the line where it is known.
    """
    try:
        return _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise yaml.YAMLError(f"{where}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise yaml.YAMLError(" ".join(str(error).split())) from None
    except (ValueError, KeyError, AttributeError):  # for `!!int x`, `!!bool 3`, `!!timestamp x`
        raise yaml.YAMLError("a value does not have the type of its tag") from None


def _check_keys(node: yaml.MappingNode) -> None:
    """Raise YAMLError if a key occurs twice in a mapping."""
    lines: dict[str, int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            line = key.start_mark.line + 1
            if key.value in lines:
                raise yaml.YAMLError(
                    f"line {line}: {key.value!r} is already set in line {lines[key.value]}"
                )
            lines[key.value] = line
