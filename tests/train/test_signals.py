from __future__ import annotations

import logging
import os
import signal
import threading

import pytest

from seq2seq_attn.train.session import catch_signals


@pytest.mark.parametrize(
    ("number", "error", "message"),
    [
        (signal.SIGINT, KeyboardInterrupt, "^$"),
        (signal.SIGTERM, SystemExit, "^143$"),
        (signal.SIGHUP, SystemExit, "^129$"),
    ],
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


def test_the_first_signal_does_not_leave_though_another_rank_had_one() -> None:
    with catch_signals() as stop:
        stop.signal_number = signal.SIGTERM  # as `Session.sync_ranks` sets it
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_set


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_stays_ignored(number: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    former = signal.signal(number, signal.SIG_IGN)
    try:
        with catch_signals() as stop:
            os.kill(os.getpid(), number)
            assert not stop.is_set
    finally:
        signal.signal(number, former)
    told = f"to stop, run: kill -TERM {os.getpid()}" in caplog.text
    assert told is (number == signal.SIGINT)


def test_a_terminal_that_is_gone_does_not_stop_the_save(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "write", fail)
    with catch_signals() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.is_set


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
