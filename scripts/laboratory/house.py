"""The shape of the package: rooms, layers, amount, longest parts, and the ways of a sentence and an
update through it.

A room is a file or folder at the package's root; the layers are the rooms on the longest chain of
imports. tests/test_layers.py and tests/lab/test_house.py keep the figures within their limits.
"""

from __future__ import annotations

import ast
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

from scripts.laboratory.harness.records import ROOT
from seq2seq_attn import load, train_model
from seq2seq_attn.model.attention.base import Attended
from seq2seq_attn.model.attention.coverage import Coverage

PACKAGE = ROOT / "seq2seq_attn"
# Left may not import right.
ORDER = (
    *("__init__", "errors", "files", "runtime", "config", "text", "data", "model"),
    *("search", "run_dir", "translate", "metrics", "train", "evaluation", "report", "export"),
    *("serve", "cli", "__main__"),
)
LAZY = ("__init__",)
"""imports on demand what lies to the right of it"""
LIMITS = {
    "rooms": 19,
    "layers": 12,
    "cycles": 0,
    "upward imports": 0,
    "files": 214,
    "files at the root": 6,
    "lines": 24_350,
    "functions": 1_412,
    "classes": 266,
    "lines of the longest file": 350,
    "lines of the longest function": 50,
}
WALKS = {
    "files that a sentence passes": 24,
    "calls from the training loop to an attention's step": 8,
}
Module = tuple[str, ...]


def main(arguments: Sequence[str] = ()) -> int:
    """Print the figures; 1 if one is beyond its limit."""
    values, limits = figures() | walks(), LIMITS | WALKS
    for name, (value, example) in values.items():
        mark = "  BEYOND THE LIMIT" if value > limits[name] else ""
        print(f"{name:52}{value:>7,} of {limits[name]:>6,}  {example}{mark}")
    return 1 if any(value > limits[name] for name, (value, _) in values.items()) else 0


def figures() -> dict[str, tuple[int, str]]:
    """Each figure of `LIMITS`, of the package as it is, with an example of what it counts."""
    graph = import_graph()
    upward, cycles, chain = (
        upward_imports(graph),
        cycles_of(import_graph(at_runtime=True)),
        longest_chain(graph),
    )
    nodes = [node for path in sources() for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    sizes = {
        "/".join(module_of(path)): len(path.read_text("utf-8").splitlines()) for path in sources()
    }
    return {
        "rooms": (len({module[0] for module in graph}), ""),
        "layers": (len(chain), " > ".join(chain)),
        "cycles": (len(cycles), "".join(cycles[:1])),
        "upward imports": (len(upward), "".join(upward[:1])),
        "files": (len(sizes), ""),
        "files at the root": (len([*PACKAGE.glob("*.py")]), ""),
        "lines": (sum(sizes.values()), ""),
        "functions": (
            sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
            "",
        ),
        "classes": (sum(isinstance(node, ast.ClassDef) for node in nodes), ""),
        "lines of the longest file": max((size, name) for name, size in sizes.items()),
        "lines of the longest function": max(
            length for path in sources() for length in function_lengths(path)
        ),
    }


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> Module:
    """A file as the parts of its name within the package: ("model", "build")."""
    return path.relative_to(PACKAGE).with_suffix("").parts


def imports(path: Path, *, at_runtime: bool = False) -> set[Module]:
    """The names that a file imports anywhere, functions included; `at_runtime`: without
    `TYPE_CHECKING` blocks."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    blocks = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
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
            places = (
                part
                for end in range(len(name), 0, -1)
                for part in (name[:end], (*name[:end], "__init__"))
            )
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


def longest_chain(graph: Mapping[Module, set[Module]]) -> tuple[str, ...]:
    """Rooms of which each imports the next, as many as there are."""
    chains: dict[str, tuple[str, ...]] = {}
    for room in ORDER:
        files = [module for module in graph if module[0] == room and module != LAZY]
        below = {target[0] for module in files for target in graph[module]} & chains.keys()
        chains[room] = (room, *max((chains[name] for name in below - {room}), key=len, default=()))
    return max(chains.values(), key=len)


def walks() -> dict[str, tuple[int, str]]:
    """Each figure of `WALKS`: an update without a fast path, and a sentence that a loaded
    `multi30k` run translates."""
    settings = {
        "data.corpus": "captions",
        "data.limit": {"train": 64, "valid": 4},
        "train.max_updates": 1,
    }
    sentence, files, stacks = "Ein Hund rennt.", set[str](), list[list[str]]()
    step = Coverage.step

    def watched_step(*values: Any) -> Attended:
        frame, names = sys._getframe().f_back, list[str]()
        while frame is not None:
            if frame.f_code.co_filename.startswith(str(PACKAGE)):
                names.append(frame.f_code.co_qualname)
            frame = frame.f_back
        stacks.append(names)
        return step(*values)

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_filename.startswith(str(PACKAGE))
            and code.co_name != "<genexpr>"
        ):
            files.add(str(Path(code.co_filename).relative_to(PACKAGE)))

    with tempfile.TemporaryDirectory() as folder:
        with patch.object(Coverage, "step", watched_step):
            train_model(["multi30k", "attention/coverage"], settings, run_dir=Path(folder, "plain"))
        calls = next(
            names[: names.index("Trainer.train") + 1]
            for names in stacks
            if "Trainer.train" in names
        )
        translator = load(
            train_model("multi30k", settings, run_dir=Path(folder, "fast")).path, "cpu"
        )
        list(translator.translate_lines([sentence]))
        sys.setprofile(watch)
        list(translator.translate_lines([sentence]))
        sys.setprofile(None)
    return dict(
        zip(
            WALKS,
            [(len(files), " ".join(sorted(files))), (len(calls), " < ".join(calls))],
            strict=True,
        )
    )


def function_lengths(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of each function of a file, and its name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield lines, f"{'/'.join(module_of(path))}:{node.name}"
