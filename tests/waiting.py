"""Waiting for another thread or process."""

import time


def wait_for(condition, seconds=600):
    give_up_at = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)
