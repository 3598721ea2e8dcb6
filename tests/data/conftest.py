from __future__ import annotations

from tests.text.conftest import multi30k_dir

__all__ = ["multi30k_dir"]
