from __future__ import annotations

import os
import signal
import threading

import pytest

from seq2seq_attn.train.signals import catch_signals


@pytest.mark.parametrize(
    ("number", "error", "message"), [(signal.SIGINT, KeyboardInterrupt, "^$"), (signal.SIGTERM, SystemExit, "^143$")]
)
def test_the_first_signal_is_noted_and_the_second_leaves(
    number: int, error: type[BaseException], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    with catch_signals() as stop:
        os.kill(os.getpid(), number)
        assert stop.is_set
        with pytest.raises(error, match=message):
            os.kill(os.getpid(), number)
        with pytest.raises(error, match=message):
            stop.leave()
    assert signal.getsignal(number) is before
    assert f"{signal.Signals(number).name}: finishing this update" in capfd.readouterr().err


def test_without_a_signal_nothing_happens() -> None:
    with catch_signals() as stop:
        assert not stop.is_set
        stop.leave()


def test_another_thread_catches_nothing() -> None:
    found: list[object] = []

    def use() -> None:
        with catch_signals() as stop:
            found.append(stop.is_set)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert found == [False]
    assert signal.getsignal(signal.SIGINT) is before
