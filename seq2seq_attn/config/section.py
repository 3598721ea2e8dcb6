"""The base class of all sections."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section of the configuration. Unknown keys are errors; values are checked on assignment too."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)
