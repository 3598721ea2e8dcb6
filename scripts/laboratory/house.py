"""The shape of the package: layers, amount, longest parts. tests/test_layers.py keeps it within the limits."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from scripts.laboratory.harness.records import ROOT

PACKAGE = ROOT / "seq2seq_attn"
# Left may not import right.
ORDER = (
    *("_version", "__init__", "errors", "files", "manifest", "runtime", "config", "text", "data", "model"),
    *("search", "run_dir", "hub", "translate", "metrics", "train", "evaluation", "report", "export"),
    *("serve", "cli", "__main__"),
)
LAZY = ("__init__",)
"""imports on demand what lies to the right of it"""
LIMITS = {
    "layers": 20,
    "cycles": 0,
    "upward imports": 0,
    "files": 225,
    "files at the root": 7,
    "lines": 24_900,
    "lines of the longest file": 350,
    "lines of the longest function": 50,
}
Module = tuple[str, ...]


def main(arguments: Sequence[str] = ()) -> int:
    """Print the figures; 1 if one is beyond its limit."""
    values = figures()
    for name, (value, example) in values.items():
        mark = "  BEYOND THE LIMIT" if value > LIMITS[name] else ""
        print(f"{name:30}{value:>7,} of {LIMITS[name]:>6,}  {example}{mark}")
    return 1 if any(value > LIMITS[name] for name, (value, _) in values.items()) else 0


def figures() -> dict[str, tuple[int, str]]:
    """Each figure of `LIMITS`, of the package as it is, with an example of what it counts."""
    upward, cycles = upward_imports(import_graph()), cycles_of(import_graph(at_runtime=True))
    files = [(len(path.read_text("utf-8").splitlines()), "/".join(module_of(path))) for path in sources()]
    return {
        "layers": (len({module_of(path)[0] for path in sources()}), ""),
        "cycles": (len(cycles), "".join(cycles[:1])),
        "upward imports": (len(upward), "".join(upward[:1])),
        "files": (len(files), ""),
        "files at the root": (len([*PACKAGE.glob("*.py")]), ""),
        "lines": (sum(num_lines for num_lines, _ in files), ""),
        "lines of the longest file": max(files),
        "lines of the longest function": max(length for path in sources() for length in function_lengths(path)),
    }


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> Module:
    """A file as the parts of its name within the package: ("model", "build")."""
    return path.relative_to(PACKAGE).with_suffix("").parts


def imports(path: Path, *, at_runtime: bool = False) -> set[Module]:
    """The names that a file imports anywhere, functions included; `at_runtime`: without `TYPE_CHECKING` blocks."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    skipped = [node for block in blocks if at_runtime for node in ast.walk(block)]
    names: set[Module] = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {(*node.module.split("."), alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {tuple(alias.name.split(".")) for alias in node.names}
    return names


def own_imports(path: Path, *, at_runtime: bool = False) -> set[Module]:
    """The package's names that a file imports, as parts within the package."""
    ours = {name[1:] for name in imports(path, at_runtime=at_runtime) if name[0] == PACKAGE.name}
    return {name for name in ours if name and name[0] in ORDER}


def import_graph(*, at_runtime: bool = False) -> dict[Module, set[Module]]:
    """Each file, and the other files that it imports."""
    modules = {module_of(path): path for path in sources()}
    graph: dict[Module, set[Module]] = {module: set() for module in modules}
    for module, path in modules.items():
        for name in own_imports(path, at_runtime=at_runtime):
            # the longest part of the name that is a file: a module, or a package's `__init__`
            places = (part for end in range(len(name), 0, -1) for part in (name[:end], (*name[:end], "__init__")))
            graph[module].add(next((place for place in places if place in modules), module))
        graph[module].discard(module)
    return graph


def upward_imports(graph: Mapping[Module, set[Module]]) -> list[str]:
    """Imports that point right in `ORDER`."""
    return [
        f"{'.'.join(module)} > {'.'.join(target)}"
        for module, targets in graph.items()
        for target in sorted(targets)
        if module != LAZY and ORDER.index(target[0]) > ORDER.index(module[0])
    ]


def cycles_of(graph: Mapping[Module, set[Module]]) -> list[str]:
    """The first cycle of a graph, as text; no cycle: an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" > ".join("/".join(node) for node in error.args[1])]
    return []


def function_lengths(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of each function of a file, and its name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield lines, f"{'/'.join(module_of(path))}:{node.name}"
