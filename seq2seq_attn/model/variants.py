"""Find variants by name: a file in the axis's folder, a module that the user imported with
`--import`, or a module of an installed package that declares it (`runtime.plugins`).

A configuration may come from someone else, so a name in it imports no other module.
"""

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Literal, NamedTuple, get_args

from pydantic import Field, PrivateAttr, PydanticUserError, TypeAdapter, ValidationError

from seq2seq_attn.config.explain import explain_value
from seq2seq_attn.config.types import NestedOptions, Section
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.runtime.plugins import plugins_by_module

ModelAxis = Literal["encoder", "cell", "attention", "normalizer", "decoder", "output"]


class Axis(NamedTuple):
    """Describe a folder of variants and the configuration keys that name a variant. In both keys,
    `{name}` stands for the variant's name. An axis without a folder has imported variants only."""

    package: str
    key: str
    options_key: str
    contract: str = ""
    """`MODULE:CLASS`, the class that every variant is an instance of; empty where variants are
    plain functions that need no building"""
    support: tuple[str, ...] = ("base",)
    """files of the folder that are not variants"""


_SETTINGS_ELSEWHERE = {
    "normalizer": "model.attention.normalizer",
    "cell": "model.encoder.cell or model.decoder.cell",
}
"""configuration keys of the axes that have no section of their own"""
AXES = {
    axis: Axis(
        f"{__package__}.{axis}",
        f"{_SETTINGS_ELSEWHERE.get(axis, f'model.{axis}.name')}={{name!r}}",
        f"model.{axis}.options",
        f"{__package__}.{axis}.base:{axis.capitalize()}",
    )
    for axis in get_args(ModelAxis)
}
"""the axes of the model, whose folders lie beside this file"""
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
_names: set[str] = set()
"""names of the imported modules, those that failed too"""


class Nested(Section):
    """An option whose value is a variant of the same axis: `{name, options}`. An example is an
    attention that combines two other attentions. Calling the option builds this variant. It
    receives the sizes that the enclosing variant was built with, and the sizes given in the
    call."""

    name: str
    options: NestedOptions = Field(default_factory=dict)
    _build: Callable[..., Any] = PrivateAttr()

    def __call__(self, **sizes: Any) -> Any:
        """Build the variant."""
        return self._build(**sizes)


def import_variants(modules: str | Sequence[str]) -> None:
    """Import modules with variants, so that configurations can name them. A module is found in the
    current folder or among the installed packages.

    `model.attention.name: my_module` calls the module's function `build`, `my_module:Cosine` its
    class or function `Cosine`.

    >>> import_variants("cosine")  # the file cosine.py, copied from examples/
    >>> settings = {"model.attention.name": "cosine", "train.max_updates": 2}
    >>> train_model("quickstart", settings, run_dir="runs/cosine")
    Run('runs/cosine')

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
        sys.path.insert(0, folder)  # the installed command does not search the current folder
        try:
            _import(name)
        except Exception as error:
            absent = error.name if isinstance(error, ModuleNotFoundError) else None
            if absent is not None and f"{name}.".startswith(f"{absent}."):
                raise UsageError(
                    f"--import {name}: no such module, neither in {folder} nor installed"
                ) from None
            raise UserError(f"--import {name}: cannot be imported ({located(error)})") from error
        finally:
            sys.path.remove(folder)


def _import(name: str) -> ModuleType:
    """Import a module with variants."""
    _names.add(name)
    _imported[name] = importlib.import_module(name)
    return _imported[name]


def _import_plugin(name: str) -> ModuleType | None:
    """Import a module of an installed package that declares it. Return None if none does. Raises
    UserError: importing the module raises an exception."""
    if name not in plugins_by_module():
        return None
    try:
        return _import(name)
    except Exception as error:
        raise UserError(
            f"{name}: installed, but cannot be imported ({located(error)}); install it again"
        ) from error


def located(error: Exception) -> str:
    """Return an error as one line. If an imported module is involved, the line begins with the file
    and line number from `place_in_module`."""
    line = f"{type(error).__name__}: {error}"
    place = place_in_module(error)
    return f"{place}: {line}" if place else line


def place_in_module(error: Exception) -> str | None:
    """Return file and line of an imported module or package in an error's traceback: the line that
    raised the error, or that called the code that raised it. Return None if no imported module was
    involved."""
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        module = f"{frame.f_globals.get('__name__')}."
        if any(module.startswith(f"{name}.") for name in _names):
            place = f"{frame.f_code.co_filename}:{line}"
    return f"{error.filename}:{error.lineno}" if isinstance(error, SyntaxError) else place


def imported_modules() -> str:
    """Return the names of all imported modules, whose variants may return wrong values."""
    return ", ".join(sorted(_names))


def packaged_variants(axis: Axis | ModelAxis) -> list[str]:
    """Return the names of the package's variants, which are the files in the axis's folder."""
    axis = AXES[axis] if isinstance(axis, str) else axis
    if not axis.package:
        return []
    spec = importlib.util.find_spec(axis.package)
    assert spec is not None
    modules = pkgutil.iter_modules(spec.submodule_search_locations)
    return sorted(
        module.name for module in modules if not module.ispkg and module.name not in axis.support
    )


def find_build(axis: Axis | ModelAxis, name: str, *, function: str = "build") -> Callable[..., Any]:
    """Return the function that builds a variant: the module's `build`, or the module's only class
    that meets the contract. For a variant that is a plain function, such as a normalizer,
    `function` is the function's name.

    Raises:
        UsageError: there is no such variant, or its module does not define such a function.
        UserError: a module of an installed package cannot be imported.
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
        module: ModuleType | None = importlib.import_module(f"{axis.package}.{name}")
    else:
        module = _imported.get(module_name) or _import_plugin(module_name)
    if module is None:
        known = [*packaged, *plugins_by_module()]
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        if nearest:
            raise UsageError(f"{key}: no such variant; did you mean {nearest[0]!r}?")
        raise UsageError(
            f"{key}: no such variant; variants are {', '.join(known)} (a variant of your own "
            f"module needs --import {module_name}, a variant of a package its installation)"
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
    # A configuration may come from someone else, and must not call `subprocess.run` because a
    # module imports it. Callables of other kinds, such as a `functools.partial`, are defined in the
    # module itself.
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
    unmet: Mapping[str, str] = MappingProxyType({}),
    **sizes: Any,
) -> Any:
    """Build a variant.

    Args:
        options: options of the variant, as in the configuration.
        unmet: for each requirement that the model does not meet, the reason for the error. The
            error is raised if the variant lists this requirement in `requires`.
        sizes: arguments that the axis offers. The variant's `build` receives those that it has a
            parameter for.

    Raises:
        UsageError: there is no such variant, an option is unknown or of the wrong type, the sizes
            do not fit the variant, or the model does not meet a requirement.
    """
    axis = AXES[axis] if isinstance(axis, str) else axis
    key = axis.key.format(name=name)
    build = find_build(axis, name)
    asked = {size: value for size, value in sizes.items() if size in read_parameters(build)}
    _check_requirements(key, build, unmet)
    built = build(**asked, **_checked_options(axis, name, build, sizes, options))
    if not isinstance(built, find_contract(axis)):
        raise UsageError(
            f"{key}: built {type(built).__name__}; expected an instance of "
            f"{find_contract(axis).__name__}"
        )
    _check_requirements(key, built, unmet)  # a function has no `requires`, its result has
    return built


def _check_requirements(key: str, variant: Any, unmet: Mapping[str, str]) -> None:
    """Raise UsageError if `unmet` has a reason for one of `variant.requires`."""
    for requirement in getattr(variant, "requires", ()):
        if requirement in unmet:
            raise UsageError(f"{key}: {unmet[requirement]}")


def find_contract(axis: Axis) -> type[Any]:
    """Return the class that every variant of the axis is an instance of."""
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
    (`attention_size: int`). Return the options with their values converted to these types.

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
            inner = axis._replace(
                key=f"{prefix}.{option}.name={{name!r}}",
                options_key=f"{prefix}.{option}.options",
            )
            nested = nested.model_copy()
            nested._build = partial(build_variant, inner, nested.name, nested.options, **sizes)
            checked[option] = nested
    return checked


def _checked_value(key: str, declared: Any, value: object) -> Any:
    """Return the value of an option, converted to its declared type."""
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
    except PydanticUserError:  # the type is imported for type checkers only
        raise UsageError(
            f"{key}: its type {declared} is not known at run time; import it outside of "
            "TYPE_CHECKING"
        ) from None


def read_parameters(build: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function with their types. A type that is not known at run time is
    given by its name."""
    try:
        return inspect.signature(build, eval_str=True).parameters
    except NameError:  # a type is imported for type checkers only
        return inspect.signature(build).parameters
    except (ValueError, TypeError):  # a built-in may have no signature
        return {}
