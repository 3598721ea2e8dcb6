"""Find variants by name: a file in the axis's folder, or a module that the user imported with
`--import`.

A configuration may come from someone else, so a name in it never imports a module. Only
`import_variants` does, with the names that the user gave.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Literal, get_args

from pydantic import Field, PrivateAttr, PydanticUserError, TypeAdapter, ValidationError

from seq2seq_attn.config.explain import explain_value
from seq2seq_attn.config.types import NestedOptions, Section
from seq2seq_attn.errors import UsageError, UserError

ModelAxis = Literal["encoder", "cell", "attention", "normalizer", "decoder", "output"]


@dataclass(frozen=True)
class Axis:
    """A folder of variants, and where a configuration names one of them. In both keys, `{name}` is
    the variant's."""

    package: str
    key: str
    options_key: str
    contract: str = ""
    """`MODULE:CLASS` that every variant is an instance of; empty: variants are functions that
    nothing builds"""
    support: tuple[str, ...] = ("base",)
    """files of the folder that are no variants"""


_SETTINGS_ELSEWHERE = {
    "normalizer": "model.attention.normalizer",
    "cell": "model.encoder.cell or model.decoder.cell",
}
"""keys of the axes that have no section of their own"""
AXES = {
    axis: Axis(
        f"{__package__}.{axis}",
        f"{_SETTINGS_ELSEWHERE.get(axis, f'model.{axis}.name')}={{name!r}}",
        f"model.{axis}.options",
        f"{__package__}.{axis}.base:{axis.capitalize()}",
    )
    for axis in get_args(ModelAxis)
}
"""the folders beside this file"""
SEARCH = Axis(
    "seq2seq_attn.search", "search.method={name!r}", "search", support=("base", "loop", "steps")
)
SCORER = Axis(
    "seq2seq_attn.search.scorers",
    "search.scorers.{name}",
    "search.scorers.{name}",
    "seq2seq_attn.search.base:Scorer",
)
_imported: dict[str, ModuleType] = {}
_files: set[str] = set()
"""files of the modules that the user has named"""


class Nested(Section):
    """An option that is itself a variant of the axis, such as an attention of a pair: `{name,
    options}`. A call builds it, for the sizes of the variant that holds it and those of the
    call."""

    name: str
    options: NestedOptions = Field(default_factory=dict)
    _build: Callable[..., Any] = PrivateAttr()

    def __call__(self, **sizes: Any) -> Any:
        """The variant, built."""
        return self._build(**sizes)


def import_variants(modules: str | Sequence[str]) -> None:
    """Import modules with variants, from the current folder or installed, so that configurations
    can name them.

    `model.attention.name: my_module` calls the module's function `build`, `my_module:Cosine` its
    class or function `Cosine`.

    Raises:
        UsageError: there is no module of that name.
        UserError: importing a module raises an exception.
    """
    folder = str(Path.cwd())
    for name in [modules] if isinstance(modules, str) else modules:
        if name.endswith(".py") or not all(part.isidentifier() for part in name.split(".")):
            raise UsageError(
                f"--import {name}: expected a module name, for example my_module for my_module.py"
            )
        sys.path.insert(0, folder)  # not on the installed command's path
        try:
            spec = importlib.util.find_spec(name)
            _files.add(str(spec.origin if spec else None))
            _imported[name] = importlib.import_module(name)
        except Exception as error:
            absent = error.name if isinstance(error, ModuleNotFoundError) else None
            if absent is not None and f"{name}.".startswith(f"{absent}."):
                raise UsageError(
                    f"--import {name}: no such module, neither in {folder} nor installed"
                ) from None
            raise UserError(f"--import {name}: cannot be imported ({located(error)})") from error
        finally:
            sys.path.remove(folder)


def located(error: Exception) -> str:
    """The error in one line; it begins with file and line where an imported module has raised it,
    or called what has raised it."""
    line = f"{type(error).__name__}: {error}"
    place = place_in_module(error)
    return f"{place}: {line}" if place else line


def place_in_module(error: Exception) -> str | None:
    """File and line where an imported module has raised an error, or called what has raised it;
    None: no imported module was involved."""
    lines = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        lines.append((str(error.filename), error.lineno))
    places = [f"{file}:{line}" for file, line in lines if file in _files]
    return places[-1] if places else None


def packaged_variants(axis: Axis | ModelAxis) -> list[str]:
    """The package's variants: the files in the axis's folder."""
    axis = AXES[axis] if isinstance(axis, str) else axis
    spec = importlib.util.find_spec(axis.package)
    assert spec is not None
    modules = pkgutil.iter_modules(spec.submodule_search_locations)
    return sorted(
        module.name for module in modules if not module.ispkg and module.name not in axis.support
    )


def find_build(axis: Axis | ModelAxis, name: str, *, function: str = "build") -> Callable[..., Any]:
    """The function that builds a variant: the module's `build`, or its only class that meets the
    contract. For a variant that is a plain function, such as a normalizer, `function` is its name.

    Raises:
        UsageError: there is no such variant, or the module has no such function, or only an
            imported one.
    """
    axis = AXES[axis] if isinstance(axis, str) else axis
    key = axis.key.format(name=name)
    module_name, _, attribute = name.partition(":")
    packaged = packaged_variants(axis)
    if name in packaged and name in _imported:
        raise UsageError(
            f"{key}: names both a packaged variant and your module; write '{name}:build' for yours"
        )
    if name in packaged:
        module = importlib.import_module(f"{axis.package}.{name}")
    elif module_name in _imported:
        module = _imported[module_name]
    else:
        nearest = difflib.get_close_matches(name, packaged, n=1, cutoff=0.75)
        hint = f"did you mean {nearest[0]!r}?" if nearest else f"variants are {', '.join(packaged)}"
        raise UsageError(
            f"{key}: no such variant; {hint} (a variant of your own module needs --import "
            f"{module_name})"
        )
    build: Callable[..., Any] | None = getattr(module, attribute or function, None)
    if build is None and not attribute and function == "build":
        classes = [kind for kind in vars(module).values() if inspect.isclass(kind)]
        classes = [kind for kind in classes if kind.__module__ == module.__name__]
        classes = [kind for kind in classes if issubclass(kind, find_contract(axis))]
        build = classes[0] if len(classes) == 1 else None
    if not callable(build):
        raise UsageError(
            f"{key}: {module.__name__} has no function or class {attribute or function!r}"
        )
    # a configuration may come from someone else, and must not call `subprocess.run` because a
    # module imports it; other callables, such as a `functools.partial`, were made in the module
    if attribute and (inspect.isroutine(build) or inspect.isclass(build)):
        if build.__module__ != module_name and not build.__module__.startswith(f"{axis.package}."):
            raise UsageError(
                f"{key}: {module_name} only imports {attribute}; name a function or class that it "
                "defines"
            )
    return build


def build_variant(
    axis: Axis | ModelAxis,
    name: str,
    options: Mapping[str, Any],
    *,
    refusals: Mapping[str, str] = MappingProxyType({}),
    **sizes: Any,
) -> Any:
    """Build a variant from its options and from those `sizes` of its axis that its `build` has a
    parameter for. `refusals`: for each requirement that is not met, the reason to refuse a variant
    whose contract `requires` it.

    Raises:
        UsageError: there is no such variant, an option is unknown or of the wrong type, the sizes
            do not fit it, or it requires something that is not there.
    """
    axis = AXES[axis] if isinstance(axis, str) else axis
    key = axis.key.format(name=name)
    build = find_build(axis, name)
    asked = {size: value for size, value in sizes.items() if size in read_parameters(build)}
    _check_requirements(key, build, refusals)
    built = build(**asked, **_checked_options(axis, name, build, sizes, options))
    if not isinstance(built, find_contract(axis)):
        raise UsageError(
            f"{key}: built {type(built).__name__}; expected an instance of "
            f"{find_contract(axis).__name__}"
        )
    _check_requirements(key, built, refusals)  # of what a function has built
    return built


def _check_requirements(key: str, variant: Any, refusals: Mapping[str, str]) -> None:
    """Raise UsageError if one of `variant.requires` is refused."""
    for requirement in getattr(variant, "requires", ()):
        if requirement in refusals:
            raise UsageError(f"{key}: {refusals[requirement]}")


def find_contract(axis: Axis) -> type[Any]:
    """The class that every variant of the axis is an instance of."""
    module, _, name = axis.contract.partition(":")
    contract: type[Any] = getattr(importlib.import_module(module), name)
    return contract


def _checked_options(
    axis: Axis,
    name: str,
    build: Callable[..., Any],
    sizes: Mapping[str, Any],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Check the options of a variant against the parameters of `build` and their types
    (`attention_size: int`).

    Raises:
        UsageError: an option is unknown, missing, or of the wrong type.
    """
    parameters = dict(read_parameters(build))
    for size in sizes:
        parameters.pop(size, None)
    is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    prefix = axis.options_key.format(name=name)
    checked = {}
    for option, value in options.items():
        if option not in parameters and not is_open:
            raise UsageError(
                f"{prefix}.{option}: not an option of {name!r}, which has "
                f"{', '.join(parameters) or 'none'}"
            )
        declared = parameters[option].annotation if option in parameters else Any
        checked[option] = _checked_value(f"{prefix}.{option}", declared, value)
    for option, parameter in parameters.items():
        is_named = parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if option not in checked and is_named and parameter.default is parameter.empty:
            raise UsageError(f"{prefix}.{option}: not set, and {name!r} has no default for it")
        nested = checked.get(option, parameter.default)
        if isinstance(nested, Nested):
            inner = replace(
                axis,
                key=f"{prefix}.{option}.name={{name!r}}",
                options_key=f"{prefix}.{option}.options",
            )
            nested = nested.model_copy()
            nested._build = partial(build_variant, inner, nested.name, nested.options, **sizes)
            checked[option] = nested
    return checked


def _checked_value(key: str, declared: Any, value: object) -> Any:
    """The value of an option, as its declared type reads it."""
    if declared is inspect.Parameter.empty:
        return value
    try:
        return TypeAdapter(declared).validate_python(value)
    except ValidationError as error:
        problems = error.errors(include_url=False)
        is_shape = declared is Nested and problems[0]["type"] != "string_type"
        inner = problems[0]["loc"] if declared is Nested and not is_shape else ()
        key = ".".join(map(str, (key, *inner)))
        hint = "{name, options}" if is_shape else None
        raise UsageError(explain_value(key, problems, hint)) from None
    except PydanticUserError:  # a type imported for type checkers only
        raise UsageError(
            f"{key}: its type {declared} is not known at run time; import it outside of "
            "TYPE_CHECKING"
        ) from None


def read_parameters(build: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function with their types, or the types' names where these are not known
    at run time."""
    try:
        return inspect.signature(build, eval_str=True).parameters
    except NameError:  # a type imported for type checkers only
        return inspect.signature(build).parameters
    except (ValueError, TypeError):  # a built-in without a signature
        return {}
