"""The registry of fast paths: `fast/` registers quicker versions of plain functions here.

An offer is a function that returns the fast version for its arguments, or None if there is no fast
version. The plain code finds it by name: `find("unroll", model, ratio)`. Without the folder
`fast/`, nothing is registered.
"""

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

Offer = Callable[..., Callable[..., Any] | None]

_offers: dict[str, Offer] = {}
_switched_off: set[str] = set()


def offer(name: str) -> Callable[[Offer], Offer]:
    """Return a decorator that registers an offer for the plain function of that name."""

    def register(function: Offer) -> Offer:
        _offers[name] = function
        return function

    return register


def names() -> list[str]:
    """Return the names of all offers."""
    _load()
    return sorted(_offers)


def find(name: str, *subject: Any) -> Callable[..., Any] | None:
    """Return the fast version for the arguments in `subject`, or None if the plain code should
    run."""
    _load()
    if name in _switched_off or name not in _offers:
        return None
    return _offers[name](*subject)


@contextmanager
def without(names: Iterable[str]) -> Iterator[None]:
    """Switch the named fast paths off inside the block, to measure how much time each saves."""
    before = set(_switched_off)
    _switched_off.update(names)
    try:
        yield
    finally:
        _switched_off.clear()
        _switched_off.update(before)


def plain() -> AbstractContextManager[None]:
    """Switch all fast paths off inside the block: the reference for tests."""
    return without(names())


@cache
def _load() -> None:
    if importlib.util.find_spec(f"{__package__}.fast") is not None:
        importlib.import_module(f"{__package__}.fast")
