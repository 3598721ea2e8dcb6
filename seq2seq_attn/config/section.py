"""The base class of all sections."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator


class Section(BaseModel):
    """A section of the configuration. Unknown keys are errors; values are checked on assignment too."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)
    FORMER_KEYS: ClassVar[dict[str, str]] = {}
    """Keys of older versions and their present names. A key under both names is an error."""

    @model_validator(mode="before")
    @classmethod
    def _read_former_keys(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {
            key if (new := cls.FORMER_KEYS.get(key, key)) in values else new: value for key, value in values.items()
        }
