"""The registry of fast paths: `fast/` registers quicker versions of plain functions here.

An offer is a function that returns the fast version for its arguments, or None if it has none. The
plain code asks by name: `find("unroll", model, ratio)`. Without the folder `fast/`, nothing is
registered.
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
    """Register an offer for the plain function of that name."""

    def register(function: Offer) -> Offer:
        _offers[name] = function
        return function

    return register


def names() -> list[str]:
    """The names of all offers."""
    _load()
    return sorted(_offers)


def find(name: str, *subject: Any) -> Callable[..., Any] | None:
    """The fast version for a subject; None: use the plain code."""
    _load()
    if name in _switched_off or name not in _offers:
        return None
    return _offers[name](*subject)


@contextmanager
def without(names: Iterable[str]) -> Iterator[None]:
    """Switch fast paths off inside the block, to measure what each is worth."""
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
