"""Waiting for another thread or process."""

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)
