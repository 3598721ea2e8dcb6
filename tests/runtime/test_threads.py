"""The number of threads: chosen by model and load, kept where the user has set it, adapted while a
command runs."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from seq2seq_attn import load
from seq2seq_attn.runtime import threads
from seq2seq_attn.runtime.threads import (
    SMALL_MODEL,
    USER_VARIABLES,
    Load,
    Watch,
    choose_threads,
    set_threads,
)
from tests.toy_run import SOURCE, make_toy_run

NUM_CPUS = 4


class FakeLoad(Load):
    """Others use these numbers of CPUs in turn, the last of them from then on."""

    seconds = 1e9

    def __init__(self, *looks: float) -> None:
        self.looks = list(looks)

    def look(self) -> float:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Four CPUs, torch's default number of threads, and a user who has set none."""
    for name in USER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "affinity", lambda: set(range(NUM_CPUS)))
    for function in ("num_cores", "num_available_cpus"):
        monkeypatch.setattr(threads, function, lambda: NUM_CPUS)
    for name in ("_default", "_last_set"):
        monkeypatch.setattr(threads, name, 0)
    number = torch.get_num_threads()
    torch.set_num_threads(NUM_CPUS)
    yield
    torch.set_num_threads(number)


@pytest.mark.parametrize(
    ("looks", "number"),
    [([0.0], 4), ([0.4], 4), ([0.6], 3), ([2.0], 2), ([9.0], 1), ([3.0, 3.0, 0.1], 4)],
)
def test_a_model_has_a_thread_for_each_free_cpu(looks: list[float], number: int) -> None:
    assert choose_threads(SMALL_MODEL, FakeLoad(*looks)) == NUM_CPUS
    assert torch.get_num_threads() == number


def test_a_small_model_has_one_thread_and_the_next_model_its_own() -> None:
    assert choose_threads(SMALL_MODEL - 1, FakeLoad(0.0)) == 1
    assert torch.get_num_threads() == 1
    choose_threads(SMALL_MODEL, FakeLoad(0.0))
    assert torch.get_num_threads() == NUM_CPUS


@pytest.mark.parametrize("name", [*USER_VARIABLES, None])
def test_a_number_that_the_user_has_set_stays(
    monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    torch.set_num_threads(3)
    if name is not None:
        monkeypatch.setenv(name, "3")
    for num_parameters in (1, SMALL_MODEL):
        assert choose_threads(num_parameters, FakeLoad(2.0)) == 3
        assert torch.get_num_threads() == 3


def test_a_watch_lowers_the_number_and_restores_it_and_tells_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    set_threads(NUM_CPUS)
    watch = Watch(NUM_CPUS)
    numbers = []
    for others in (0.0, 1.0, 3.3, 0.0, 2.0):
        watch._load = FakeLoad(others)
        watch.check()
        numbers.append(torch.get_num_threads())
    assert numbers == [4, 3, 1, 4, 2]
    assert len(caplog.messages) == 1
    assert "4 threads" in caplog.text


@pytest.mark.parametrize(
    ("number", "seconds", "is_due"), [(4, 1.9, False), (4, 2.1, True), (2, 2.1, False)]
)
def test_a_watch_looks_seldom_and_with_fewer_threads_more_seldom(
    number: int, seconds: float, is_due: bool
) -> None:
    set_threads(number)
    watch = Watch(NUM_CPUS)
    watch._load = FakeLoad(3.0)
    watch._load.seconds = seconds
    watch.check()
    assert (torch.get_num_threads() == 1) == is_due


def test_models_in_turn_have_their_own_numbers() -> None:
    set_threads(NUM_CPUS)
    large = Watch(NUM_CPUS)
    set_threads(1)
    small = Watch(1)
    for watch, number in ((large, NUM_CPUS), (small, 1), (large, NUM_CPUS)):
        watch._load = FakeLoad(0.0)
        watch.check()
        assert torch.get_num_threads() == number


def test_a_watch_leaves_a_number_that_the_program_sets_later() -> None:
    set_threads(NUM_CPUS)
    watch = Watch(NUM_CPUS)
    watch._load = FakeLoad(3.0)
    torch.set_num_threads(3)
    watch.check()
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("fix", ["do this", None])
def test_where_the_number_is_fixed_a_watch_warns_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fix: str | None
) -> None:
    if fix is None:
        monkeypatch.setenv("OMP_NUM_THREADS", str(NUM_CPUS))
    watch = Watch(NUM_CPUS, fix=fix)
    watch._load = FakeLoad(0.2, 3.0)
    for _ in range(3):
        watch.check()
    assert torch.get_num_threads() == NUM_CPUS
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert (fix or "OMP_NUM_THREADS") in caplog.text


def test_a_translator_watches_between_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_toy_run(tmp_path / "run")
    checks: list[Watch] = []
    monkeypatch.setattr(Watch, "check", lambda watch: checks.append(watch))
    translator = load(run.path, "cpu")
    assert torch.get_num_threads() == 1  # a small model
    translator.translate(SOURCE, batch_size=2)
    assert len(checks) == 3
    translator.score(SOURCE, SOURCE, batch_size=1)
    assert checks == [translator.watch] * (3 + len(SOURCE))
