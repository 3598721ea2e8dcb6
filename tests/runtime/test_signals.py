"""Signals that ask training to stop."""

import os
import signal
import threading

import pytest

from seq2seq_attn.runtime.signals import record_signals

SIGNALS = [
    (signal.SIGINT, KeyboardInterrupt, "^$"),
    (signal.SIGTERM, SystemExit, "^143$"),
    (signal.SIGHUP, SystemExit, "^129$"),
]


@pytest.mark.usefixtures("heard_signals")
@pytest.mark.parametrize(("number", "error", "message"), SIGNALS)
def test_the_first_signal_is_noted_and_the_second_leaves(number, error, message, capfd):
    before = signal.getsignal(number)
    with record_signals() as stop:
        assert not stop.is_set
        stop.leave()
        stop.signal_number = number  # as the training loop sets it if another rank had a signal
        os.kill(os.getpid(), number)
        assert stop.is_set
        with pytest.raises(error, match=message):
            os.kill(os.getpid(), number)
        with pytest.raises(error, match=message):
            stop.leave()
    assert signal.getsignal(number) is before
    assert f"{signal.Signals(number).name}" in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_stays_ignored(number, caplog):
    caplog.set_level("INFO")
    former = signal.signal(number, signal.SIG_IGN)
    try:
        with record_signals() as stop:
            os.kill(os.getpid(), number)
            assert not stop.is_set
    finally:
        signal.signal(number, former)
    assert (f"kill -TERM {os.getpid()}" in caplog.text) is (number == signal.SIGINT)


@pytest.mark.usefixtures("heard_signals")
def test_a_terminal_that_is_gone_does_not_stop_the_save(monkeypatch):
    def fail(*args):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "write", fail)
    with record_signals() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.is_set


def test_another_thread_catches_nothing():
    requests = []

    def use():
        with record_signals() as stop:
            requests.append(stop.is_set)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert requests == [False]
    assert signal.getsignal(signal.SIGINT) is before
