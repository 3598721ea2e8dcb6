"""The base class of all sections."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section of the configuration. Unknown keys are errors; values are checked on assignment too."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    def changes_to(self, other: Self) -> dict[str, tuple[Any, Any]]:
        """The settings that differ: dotted key to own and other value. A value is None where there is none."""
        return _changes(self.model_dump(mode="json"), other.model_dump(mode="json"))


def _changes(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    changes: dict[str, tuple[Any, Any]] = {}
    for key in {**old, **new}:
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            changes |= _changes(before, after, f"{prefix}{key}.")
        elif before != after:
            changes[prefix + key] = (before, after)
    return changes
