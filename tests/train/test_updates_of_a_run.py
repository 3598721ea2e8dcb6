"""The training loop: teacher forcing ratios, update numbers after a resume, random numbers of each rank."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from seq2seq_attn.train import checkpoint, loop
from seq2seq_attn.train.distributed import Group
from seq2seq_attn.train.loop import train
from seq2seq_attn.train.update import Updater, UpdateResult
from tests.train.conftest import ConfigMaker


def test_scheduled_sampling_follows_its_schedule(
    toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratios, train_step = [], Updater.train_step

    def noting(self: Updater, *args: Any, teacher_forcing_ratio: float, **settings: Any) -> UpdateResult:
        ratios.append(teacher_forcing_ratio)
        return train_step(self, *args, teacher_forcing_ratio=teacher_forcing_ratio, **settings)

    monkeypatch.setattr(Updater, "train_step", noting)
    schedule = "train.teacher_forcing={schedule: linear, start: 1.0, end: 0.2, num_updates: 4}"
    train(toy_config(schedule, "train.max_updates=6"), run_dir=tmp_path / "run")
    assert ratios == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2, 0.2])


def test_a_resume_with_another_precision_threads_or_processes_says_so(
    toy_config: ConfigMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = train(toy_config("train.max_updates=1"), run_dir=tmp_path / "run")
    tensors, values, _ = checkpoint.load_state(run.last_dir)
    for num_threads, num_processes, precision, warnings in [
        (1, 1, "fp32", []),
        (1, 1, "bf16", ["precision: fp32 in this session, bf16 before"]),
        (7, 1, "fp32", ["num_threads: 1 in this session, 7 before"]),
        (1, 4, "fp32", ["num_processes: 1 in this session, 4 before"]),
    ]:
        caplog.clear()
        now = {"num_threads": num_threads, "num_processes": num_processes, "precision": precision}
        changed = {**values, **now}
        checkpoint.save_state(run.last_dir, tensors, changed)
        train(toy_config("train.max_updates=1"), run_dir=run.path, resume=True)
        assert [message.rpartition(":")[0] for message in caplog.messages if "before:" in message] == warnings


class Begun(Exception):
    """Raised to stop a training run once its model is built."""


def test_ranks_share_their_first_weights_and_nothing_that_they_draw_later(
    toy_config: ConfigMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, draws = [], []

    def begin(model: torch.nn.Module, *args: Any, **options: Any) -> Updater:
        weights.append(torch.cat([parameter.flatten() for parameter in model.parameters()]))
        draws.append(torch.rand(3).tolist())
        raise Begun

    class Rank(Group):
        """One of four, which need not wait for each other here."""

        def broadcast(self, call: Any) -> Any:
            return call()

    monkeypatch.setattr(loop, "Updater", begin)
    for rank in range(3):
        monkeypatch.setattr(loop, "join_group", partial(nullcontext, Rank(rank, 4)))
        with pytest.raises(Begun):
            train(toy_config(), run_dir=tmp_path / "run")
    assert all(torch.equal(one, weights[0]) for one in weights)
    assert len({tuple(drawn) for drawn in draws}) == 3
