"""Find variants by name: a file in the axis's folder, or a module that the user imported with `--import`.

A configuration may come from someone else, so a name in it never imports a module. Only `import_variants` does, with
the names that the user gave.
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
from types import ModuleType
from typing import Any, Literal

from pydantic import Field, PrivateAttr, PydanticUserError, TypeAdapter, ValidationError

from seq2seq_attn.config import explain_value
from seq2seq_attn.config.section import Section
from seq2seq_attn.config.types import NestedOptions
from seq2seq_attn.errors import UsageError, UserError

ModelAxis = Literal["encoder", "cell", "attention", "normalizer", "decoder", "output"]


@dataclass(frozen=True)
class Axis:
    """A folder of variants, and where a configuration names one of them. In both keys, `{name}` is the variant's."""

    package: str
    key: str
    options_key: str
    contract: str = ""
    """the name of the class in the package's `base` that every variant is an instance of; empty: variants are functions
    that nothing builds"""
    base: str = ""
    """the module of that class, if it is another one"""
    support: tuple[str, ...] = ("base",)
    """files of the folder that are no variants"""

    @classmethod
    def of_model(cls, axis: ModelAxis) -> Axis:
        """A folder beside this file."""
        prefix = f"model.{axis}"
        key = _SETTINGS_ELSEWHERE.get(axis, f"{prefix}.name")
        return cls(f"{__package__}.{axis}", f"{key}={{name!r}}", f"{prefix}.options", axis.capitalize())


_SETTINGS_ELSEWHERE = {"normalizer": "model.attention.normalizer", "cell": "model.encoder.cell or model.decoder.cell"}
"""keys of the axes that have no section of their own"""
_imported: dict[str, ModuleType] = {}
_files: set[str] = set()
"""files of the modules that the user has named"""


@dataclass(frozen=True)
class Missing:
    """A parameter of `build` that this model or its data does not have: a variant that asks for it is refused."""

    reason: str


class Nested(Section):
    """An option that is itself a variant of the axis, such as an attention of a pair: `{name, options}`. A call builds
    it, for the sizes of the variant that holds it and those of the call."""

    name: str
    options: NestedOptions = Field(default_factory=dict)
    _build: Callable[..., Any] = PrivateAttr()

    def __call__(self, **sizes: Any) -> Any:
        """The variant, built."""
        return self._build(**sizes)

    def within(self, axis: Axis, key: str, sizes: Mapping[str, Any]) -> Nested:
        """The same variant as the option `key` of one that is built for these sizes."""
        nested = self.model_copy()
        axis = replace(axis, key=f"{key}.name={{name!r}}", options_key=f"{key}.options")
        nested._build = partial(build_variant, axis, self.name, self.options, **sizes)
        return nested


SEARCH = Axis(
    "seq2seq_attn.search",
    "search.method={name!r}",
    "search",
    support=("base", "finish", "ranking", "steps"),
)
SCORER = Axis(
    "seq2seq_attn.search.scorers",
    "search.scorers.{name}",
    "search.scorers.{name}",
    "Scorer",
    "seq2seq_attn.search.base",
)


class UnknownVariant(UsageError):
    """The name is neither a variant of the package nor one from an imported module."""

    def __init__(self, key: str, module: str, hint: str) -> None:
        super().__init__(f"{key}: no such variant; {hint} (a variant of your own module needs --import {module})")
        self._key = key
        self._module = module

    def for_run(self, run: Path) -> UsageError:
        """The error for a run that was trained with the variant."""
        return UsageError(
            f"{run}: this run needs --import {self._module} ({self._key} is not a variant of the package)"
        )


def import_variants(modules: str | Sequence[str]) -> None:
    """Import modules with variants, from the current folder or installed, so that configurations can name them.

    `model.attention.name: my_module` calls the module's function `build`, `my_module:Cosine` its class or function
    `Cosine`.

    Raises:
        UsageError: there is no module of that name.
        UserError: importing a module raises an exception.
    """
    for name in [modules] if isinstance(modules, str) else modules:
        _imported[name] = _import(name)


def packaged_variants(axis: Axis | ModelAxis) -> list[str]:
    """The package's variants: the files in the axis's folder."""
    axis = _axis(axis)
    spec = importlib.util.find_spec(axis.package)
    assert spec is not None
    modules = pkgutil.iter_modules(spec.submodule_search_locations or [])
    return sorted(module.name for module in modules if not module.ispkg and module.name not in axis.support)


def find_build(axis: Axis | ModelAxis, name: str, *, function: str = "build") -> Callable[..., Any]:
    """The function that builds a variant. For a variant that is a plain function, such as a normalizer, `function` is
    its name.

    Raises:
        UnknownVariant: there is no such variant.
        UsageError: the module has no such function, or only an imported one.
    """
    axis = _axis(axis)
    key = axis.key.format(name=name)
    module_name, _, named = name.partition(":")
    packaged = packaged_variants(axis)
    if name in packaged:
        if name in _imported:
            raise UsageError(f"{key}: names both a packaged variant and your module; write '{name}:build' for yours")
        return _function_of(key, importlib.import_module(f"{axis.package}.{name}"), function)
    if module_name in _imported:
        build = _function_of(key, _imported[module_name], named or function)
        if named and not _is_own(build, module_name, axis):
            raise UsageError(f"{key}: {module_name} only imports {named}; name a function or class that it defines")
        return build
    nearest = difflib.get_close_matches(name, packaged, n=1, cutoff=0.75)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"variants are {', '.join(packaged)}"
    if not _is_module_name(module_name):
        raise UsageError(f"{key}: no such variant; {hint}")
    raise UnknownVariant(key, module_name, hint)


def build_variant(axis: Axis | ModelAxis, name: str, options: Mapping[str, Any], **sizes: Any) -> Any:
    """Build a variant from its options and from those `sizes` of its axis that its `build` has a parameter for.

    Raises:
        UsageError: there is no such variant, an option is unknown or of the wrong type, the sizes do not fit it, or
            it asks for one that is missing.
    """
    axis = _axis(axis)
    key, build = axis.key.format(name=name), find_build(axis, name)
    given = {size: value for size, value in sizes.items() if size in read_parameters(build)}
    if missing := next((value for value in given.values() if isinstance(value, Missing)), None):
        raise UsageError(f"{key}: {missing.reason}")
    built = build(**given, **_checked_options(axis, name, build, sizes, options))
    contract = getattr(importlib.import_module(axis.base or f"{axis.package}.base"), axis.contract)
    if not isinstance(built, contract):
        raise UsageError(f"{key}: built {type(built).__name__}; expected an instance of {contract.__name__}")
    return built


def _checked_options(
    axis: Axis, name: str, build: Callable[..., Any], sizes: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Check the options of a variant against the parameters of `build` and their types (`attention_size: int`).

    Raises:
        UsageError: an option is unknown, missing, or of the wrong type.
    """
    parameters = {key: parameter for key, parameter in read_parameters(build).items() if key not in sizes}
    is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    prefix = axis.options_key.format(name=name)
    checked = {}
    for option, value in options.items():
        if option not in parameters and not is_open:
            raise UsageError(
                f"{prefix}.{option}: not an option of {name!r}, which has {', '.join(parameters) or 'none'}"
            )
        declared = parameters[option].annotation if option in parameters else Any
        try:
            checked[option] = TypeAdapter(Any if declared is inspect.Parameter.empty else declared).validate_python(
                value
            )
        except ValidationError as error:
            problems = error.errors(include_url=False)
            is_shape = declared is Nested and problems[0]["type"] != "string_type"
            inner = problems[0]["loc"] if declared is Nested and not is_shape else ()
            key, hint = ".".join(map(str, (prefix, option, *inner))), "{name, options}" if is_shape else None
            raise UsageError(explain_value(key, problems, hint)) from None
        except PydanticUserError:  # a type imported for type checkers only
            raise UsageError(
                f"{prefix}.{option}: its type {declared} is not known at run time; import it outside of TYPE_CHECKING"
            ) from None
    for option, parameter in parameters.items():
        if (
            option not in checked
            and parameter.default is parameter.empty
            and parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ):
            raise UsageError(f"{prefix}.{option}: not set, and {name!r} has no default for it")
        if isinstance(nested := checked.get(option, parameter.default), Nested):
            checked[option] = nested.within(axis, f"{prefix}.{option}", sizes)
    return checked


def _axis(axis: Axis | ModelAxis) -> Axis:
    return axis if isinstance(axis, Axis) else Axis.of_model(axis)


def takes(axis: Axis | ModelAxis, name: str, parameter: str) -> bool:
    """Whether the function that builds this variant has this parameter.

    Raises:
        UsageError: as `find_build`.
    """
    return parameter in read_parameters(find_build(axis, name))


def read_parameters(build: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function with their types, or the types' names where these are not known at run time."""
    try:
        return inspect.signature(build, eval_str=True).parameters
    except NameError:  # a type imported for type checkers only
        return inspect.signature(build).parameters
    except (ValueError, TypeError):  # a built-in without a signature
        return {}


def _is_module_name(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _import(name: str) -> ModuleType:
    if name.endswith(".py") or not _is_module_name(name):
        raise UsageError(f"--import {name}: expected a module name, for example my_module for my_module.py")
    folder = str(Path.cwd())
    sys.path.insert(0, folder)  # not on the installed command's path
    try:
        spec = importlib.util.find_spec(name)
        _files.add(str(spec.origin if spec else None))
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UsageError(f"--import {name}: no such module, neither in {folder} nor installed") from None
        raise UserError(f"--import {name}: cannot be imported ({located(error)})") from error
    except Exception as error:
        raise UserError(f"--import {name}: cannot be imported ({located(error)})") from error
    finally:
        sys.path.remove(folder)


def located(error: Exception) -> str:
    """The error in one line; it begins with file and line where an imported module has raised it, or called what has
    raised it."""
    lines = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        lines.append((str(error.filename), error.lineno))
    where = [f"{file}:{line}: " for file, line in lines if file in _files]
    return f"{where[-1] if where else ''}{type(error).__name__}: {error}"


def _is_own(build: Callable[..., Any], module: str, axis: Axis) -> bool:
    """Whether a module defines a function or class, or imports it from the axis's folder. A configuration may come from
    someone else, and must not call `subprocess.run` because a module imports it."""
    if not (inspect.isroutine(build) or inspect.isclass(build)):
        return True  # made in the module, such as a `functools.partial`
    return build.__module__ == module or build.__module__.startswith(f"{axis.package}.")


def _function_of(key: str, module: ModuleType, name: str) -> Callable[..., Any]:
    function: Callable[..., Any] | None = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"{key}: {module.__name__} has no function or class {name!r}")
    return function
