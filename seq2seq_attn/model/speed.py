"""Where `fast/` offers quicker versions of plain functions. Without that folder nothing is offered.

An offer is a function that looks at what is to be done and returns the quick version, or None where it knows none. The
plain code asks by name: `find("unroll", model)`.
"""

from __future__ import annotations

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
    """Register what `fast/` has for a plain function of that name."""

    def register(function: Offer) -> Offer:
        _offers[name] = function
        return function

    return register


def names() -> list[str]:
    """The names that have an offer."""
    _load()
    return sorted(_offers)


def find(name: str, *subject: Any) -> Callable[..., Any] | None:
    """The quick version for a subject; None: do it the plain way."""
    _load()
    if name in _switched_off or name not in _offers:
        return None
    return _offers[name](*subject)


@contextmanager
def without(names: Iterable[str]) -> Iterator[None]:
    """Inside the block, do what these names stand for the plain way: to measure what each is worth."""
    before = set(_switched_off)
    _switched_off.update(names)
    try:
        yield
    finally:
        _switched_off.clear()
        _switched_off.update(before)


def plain() -> AbstractContextManager[None]:
    """Inside the block, do everything the plain way: the reference for tests."""
    return without(names())


@cache
def _load() -> None:
    package = f"{__package__}.fast"
    if importlib.util.find_spec(package) is not None:
        importlib.import_module(package)
