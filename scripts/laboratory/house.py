"""The shape of the project: how much code there is, how dense it is, and where imports point.

Amount is counted in tokens without comments, docstrings and line ends, so that neither layout nor
explanation changes it. Density is counted per line of code, and in shapes per 1,000 lines of code
that make lines hard to read. tests/test_layers.py keeps the figures within their limits.
"""

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from scripts.laboratory.harness.records import ROOT

PACKAGE = ROOT / "seq2seq_attn"
# Left may not import right.
ORDER = (
    *("__init__", "errors", "leftovers", "files", "runtime", "config", "text", "data", "model"),
    *("search", "run", "translate", "metrics", "train", "evaluation", "report", "export"),
    *("api", "serve", "cli", "__main__"),
)
LAZY = ("__init__",)
"""imports on demand what lies to the right of it"""
ROOM = 1.03
"""A figure may be so many times its goal."""
MAX_COLUMNS = 100
GOALS = {
    "package: tokens": 154_000,
    "package: tokens per line": 8.5,
    "package: characters per line": 38,
    "package: tuple assignments": 4,
    "package: comprehensions": 35,
    "package: assignments in expressions": 2,
    "package: long lines": 0,
    "tests: tokens": 185_000,
    "tests: tokens per line": 9.5,
    "laboratory: tokens": 60_000,
    "web: lines": 3_300,
    "docs: words": 35_000,
    "cycles": 0,
    "upward imports": 0,
    "lines of the longest file": 400,
    "lines of the longest function": 50,
}
"""tuple assignments, comprehensions and the like per 1,000 lines of code"""
NOT_REACHED = {
    "package: tokens": 193_020,
    "web: lines": 3_479,
    "tests: tokens": 235_370,
    "laboratory: tokens": 63_660,
}
"""limits of the figures whose goals are still ahead; they may only fall"""
_WITHOUT_ROOM = {"cycles", "upward imports", "package: long lines"}
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Module = tuple[str, ...]


def main(arguments: Sequence[str] = ()) -> int:
    """Print the figures; 1 if one is beyond its limit."""
    exceeded = beyond_limits(figures())
    for name, value in figures().items():
        mark = "  BEYOND THE LIMIT" if name in exceeded else ""
        print(f"{name:40}{value:>10,g}, goal {GOALS[name]:>8,g}{mark}")
    return 1 if exceeded else 0


def beyond_limits(values: Mapping[str, float]) -> dict[str, float]:
    """The figures beyond their goal and `ROOM`, or beyond their limit in `NOT_REACHED`."""
    exceeded = {}
    for name, value in values.items():
        room = 1 if name in _WITHOUT_ROOM else ROOM
        if value > NOT_REACHED.get(name, GOALS[name] * room):
            exceeded[name] = value
    return exceeded


def figures() -> dict[str, float]:
    """Each figure of `GOALS`, of the project as it is."""
    package = measure(PACKAGE)
    tests = measure(ROOT / "tests")
    thousands = package["lines"] / 1000
    graph = import_graph()
    return {
        "package: tokens": package["tokens"],
        "package: tokens per line": package["tokens"] / package["lines"],
        "package: characters per line": package["characters"] / package["lines"],
        "package: tuple assignments": package["tuples"] / thousands,
        "package: comprehensions": package["comprehensions"] / thousands,
        "package: assignments in expressions": package["walrus"] / thousands,
        "package: long lines": package["long"] / thousands,
        "tests: tokens": tests["tokens"],
        "tests: tokens per line": tests["tokens"] / tests["lines"],
        "laboratory: tokens": measure(ROOT / "scripts" / "laboratory")["tokens"],
        "web: lines": sum(map(count_lines, web_files())),
        "docs: words": count_words(ROOT / "docs"),
        "cycles": len(cycles_in(import_graph(at_runtime=True))),
        "upward imports": len(upward_imports(graph)),
        "lines of the longest file": max(map(count_lines, sources())),
        "lines of the longest function": max(map(longest_function, sources())),
    }


def measure(folder: Path) -> Counter[str]:
    """The tokens, lines, characters and shapes of the code in a folder."""
    total = Counter[str]()
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        rows = text.splitlines()
        code = set[int]()
        for token in code_tokens(text, docstring_lines(tree)):
            total["tokens"] += 1
            code.update(range(token.start[0], token.end[0] + 1))
        lines = [rows[number - 1] for number in code]
        total["lines"] += len(lines)
        total["characters"] += sum(len(line.strip()) for line in lines)
        total["long"] += sum(len(line) > MAX_COLUMNS for line in lines)
        for node in ast.walk(tree):
            total["tuples"] += is_tuple_assignment(node)
            total["walrus"] += isinstance(node, ast.NamedExpr)
            total["comprehensions"] += isinstance(node, _COMPREHENSIONS)
    return total


def code_tokens(text: str, docstrings: set[int]) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a file without layout, comments and docstrings."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        begins_line = not token.line[: token.start[1]].strip()
        is_docstring = (
            token.type == tokenize.STRING and token.start[0] in docstrings and begins_line
        )
        if token.type not in _LAYOUT and not is_docstring:
            yield token


def docstring_lines(tree: ast.AST) -> set[int]:
    """The numbers of the lines of strings that are statements."""
    lines = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def is_tuple_assignment(node: ast.AST) -> bool:
    """Whether a statement assigns several values that stand side by side, `a, b = x, y`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    return any(isinstance(target, ast.Tuple) for target in node.targets)


def web_files() -> list[Path]:
    """The JavaScript, CSS, HTML and WebAssembly text of the package."""
    return [path for path in PACKAGE.rglob("*") if path.suffix in {".js", ".css", ".html", ".wat"}]


def count_words(folder: Path) -> int:
    """The words of a folder's Markdown."""
    return sum(len(path.read_text(encoding="utf-8").split()) for path in folder.rglob("*.md"))


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def longest_function(path: Path) -> int:
    """The number of lines of a file's longest function; 0 if it has none."""
    longest = 0
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            longest = max(longest, (node.end_lineno or node.lineno) - node.lineno + 1)
    return longest


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> Module:
    """A file as the parts of its name within the package: ("model", "build")."""
    return path.relative_to(PACKAGE).with_suffix("").parts


def imports(path: Path, *, at_runtime: bool = False) -> set[Module]:
    """The names that a file imports anywhere, functions included; `at_runtime`: without
    `TYPE_CHECKING` blocks."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set[ast.AST]()
    for node in ast.walk(tree):
        is_block = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if is_block and at_runtime:
            skipped.update(ast.walk(node))
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
    inside = set[Module]()
    for name in imports(path, at_runtime=at_runtime):
        if name[0] == PACKAGE.name and len(name) > 1 and name[1] in ORDER:
            inside.add(name[1:])
    return inside


def import_graph(*, at_runtime: bool = False) -> dict[Module, set[Module]]:
    """Each file, and the other files that it imports."""
    modules = {module_of(path): path for path in sources()}
    graph: dict[Module, set[Module]] = {}
    for module, path in modules.items():
        imported = own_imports(path, at_runtime=at_runtime)
        graph[module] = {file_of(name, modules) for name in imported} - {module, ()}
    return graph


def file_of(name: Module, modules: Mapping[Module, Path]) -> Module:
    """The file that has an imported name: the longest part of the name that is a module, or a
    package's `__init__`; empty if there is none."""
    for end in range(len(name), 0, -1):
        for module in (name[:end], (*name[:end], "__init__")):
            if module in modules:
                return module
    return ()


def upward_imports(graph: Mapping[Module, set[Module]]) -> list[str]:
    """Imports that point right in `ORDER`."""
    upward = []
    for module, targets in graph.items():
        for target in sorted(targets):
            if module != LAZY and ORDER.index(target[0]) > ORDER.index(module[0]):
                upward.append(f"{'.'.join(module)} > {'.'.join(target)}")
    return upward


def cycles_in(graph: Mapping[Module, set[Module]]) -> list[str]:
    """The first cycle of a graph, as text; no cycle: an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" > ".join("/".join(node) for node in error.args[1])]
    return []
