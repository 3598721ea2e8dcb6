from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from torch import nn

from seq2seq_attn import files
from seq2seq_attn.errors import UserError
from seq2seq_attn.train import checkpoint

CPU = torch.device("cpu")


def test_round_trip_is_exact(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(3, 5), "b": torch.arange(7, dtype=torch.uint8), "c": torch.tensor(2.0)}
    values = {"x": 0.1 + 0.2, "list": [1, None, "ß"], "nested": {"y": 1e-300}}
    checkpoint.save_state(tmp_path / "last", tensors, values)
    loaded, loaded_values = checkpoint.load_state(tmp_path / "last")
    assert loaded_values == values
    assert loaded.keys() == tensors.keys()
    assert all(
        torch.equal(loaded[name], tensors[name]) and loaded[name].dtype == tensors[name].dtype for name in tensors
    )


def test_only_the_newest_state_is_kept(tmp_path: Path) -> None:
    for number in range(3):
        checkpoint.save_state(tmp_path, {"a": torch.full((2,), number)}, {"number": number})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["CURRENT.json", "state-000003"]
    assert checkpoint.read_values(tmp_path) == {"number": 2}


def test_a_state_is_on_disk_before_it_becomes_current(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its files, its own directory and the one that names it, in case the machine loses power."""
    last, fsync, replace = tmp_path / "last", os.fsync, Path.replace
    synced: set[int] = set()
    missing: list[Path] = []

    def note_sync(handle: int) -> None:
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    def note_replace(path: Path, target: Path) -> Path:
        if target == last / checkpoint.CURRENT:
            state = last / "state-000001"
            missing.extend(one for one in (last, state, *state.iterdir()) if one.stat().st_ino not in synced)
            synced.clear()
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_replace)
    checkpoint.save_state(last, {"a": torch.zeros(2)}, {"number": 0})
    assert missing == []
    assert synced == {last.stat().st_ino}


# What a process may die in: before each of these calls, the state on disk must be the old one, whole.
STEPS = ["mkdir", "_write_synced", "_sync_directory", "write_checked_json"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("call", [1, 2])
def test_a_death_while_saving_leaves_a_whole_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, call: int
) -> None:
    last = tmp_path / "last"
    checkpoint.save_state(last, {"a": torch.zeros(2)}, {"number": 0})
    owner = Path if step == "mkdir" else checkpoint
    real, calls = getattr(owner, step), []

    def die(*args: object, **kwargs: object) -> object:
        calls.append(args)
        if len(calls) == call:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, die)
        try:
            checkpoint.save_state(last, {"a": torch.ones(2)}, {"number": 1})
        except KeyboardInterrupt:
            pass
    tensors, values = checkpoint.load_state(last)
    assert tensors["a"].tolist() == [values["number"]] * 2
    checkpoint.save_state(last, {"a": torch.full((2,), 2.0)}, {"number": 2})
    assert checkpoint.read_values(last) == {"number": 2}
    assert len(list(last.iterdir())) == 2


@pytest.mark.parametrize("name", ["tensors.safetensors", "values.json"])
def test_damage_is_refused(tmp_path: Path, name: str) -> None:
    checkpoint.save_state(tmp_path, {"a": torch.zeros(100)}, {"number": 0})
    path = tmp_path / "state-000001" / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"{name}: damaged .*SHA-256"):
        checkpoint.load_state(tmp_path)
    path.unlink()
    with pytest.raises(UserError, match=rf"{name}: cannot be read"):
        checkpoint.load_state(tmp_path)


def test_another_format_is_refused(tmp_path: Path) -> None:
    checkpoint.save_state(tmp_path, {"a": torch.zeros(1)}, {})
    files.write_checked_json(tmp_path / "CURRENT.json", {"format": 99})
    with pytest.raises(UserError, match="format 99; this version reads format 1"):
        checkpoint.load_state(tmp_path)


def test_no_state(tmp_path: Path) -> None:
    assert not checkpoint.has_state(tmp_path)
    with pytest.raises(UserError, match="no such file"):
        checkpoint.load_state(tmp_path)


def test_the_generator_goes_on_where_it_was() -> None:
    def draw() -> tuple[object, ...]:
        return torch.rand(3).tolist(), torch.randn(2).tolist()

    draw()
    tensors = checkpoint.rng_state(CPU)
    first = draw()
    checkpoint.set_rng_state(tensors, CPU)
    assert draw() == first


def test_optimizer_goes_on_bit_for_bit() -> None:
    def step(model: nn.Module, optimizer: torch.optim.Optimizer, value: float) -> None:
        optimizer.zero_grad()
        (model(torch.full((1, 3), value)) ** 2).sum().backward()
        optimizer.step()

    def build() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(1)
        model = nn.Linear(3, 2)
        return model, torch.optim.Adam(model.parameters(), fused=True)

    model, optimizer = build()
    for value in (1.0, 2.0):
        step(model, optimizer, value)
    saved = checkpoint.model_tensors(model) | checkpoint.optimizer_tensors(optimizer)
    saved = {name: tensor.clone() for name, tensor in saved.items()}
    step(model, optimizer, 3.0)
    other, other_optimizer = build()
    checkpoint.set_model_tensors(other, saved)
    checkpoint.set_optimizer_tensors(other_optimizer, saved)
    step(other, other_optimizer, 3.0)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters(), strict=True))


def test_tied_parameters_are_saved_once() -> None:
    model = nn.ModuleList([nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)])
    model[1].weight = model[0].weight
    assert list(checkpoint.model_tensors(model)) == ["model/0.weight"]


def test_a_state_of_another_model_is_refused() -> None:
    saved = checkpoint.model_tensors(nn.Linear(3, 2))
    with pytest.raises(UserError, match="belongs to another model"):
        checkpoint.set_model_tensors(nn.Linear(2, 3), saved)


# ---- damage and foreign folders ----


@pytest.mark.parametrize(
    "change",
    [
        {"state": None},
        {"state": "../../elsewhere"},
        {"state": "state-²"},
        {"state": 5},
        *({"files": files} for files in (5, None, "x", [1], {})),
    ],
)
def test_a_pointer_to_no_state_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    checkpoint.save_state(tmp_path, {"a": torch.zeros(1)}, {})
    pointer = tmp_path / "CURRENT.json"
    files.write_checked_json(pointer, {**files.read_checked_json(pointer), **change})
    with pytest.raises(UserError, match=r"CURRENT.json: damaged \(names no state of this run\)|values.json: damaged"):
        checkpoint.load_state(tmp_path)


def test_only_old_states_are_removed(tmp_path: Path) -> None:
    elsewhere, last = tmp_path / "elsewhere", tmp_path / "last"
    (elsewhere / "inside").mkdir(parents=True)
    last.mkdir()
    (last / "notes.txt").write_text("mine")
    (last / ".CURRENT.json.x1.tmp").touch()
    (last / "state-000007").symlink_to(elsewhere)
    for number in range(2):
        checkpoint.save_state(last, {}, {"number": number})
    assert sorted(path.name for path in last.iterdir()) == ["CURRENT.json", "notes.txt", "state-000007", "state-000009"]
    assert (elsewhere / "inside").exists()


def test_values_of_another_shape_are_refused_in_one_line(tmp_path: Path) -> None:
    for error in (KeyError("rng"), TypeError("x"), ValueError("a\nb"), RuntimeError("RNG state\nis wrong")):
        with pytest.raises(UserError, match=r"last: .*; start a new run") as caught:
            with checkpoint.report_incompatible_state(tmp_path / "last"):
                raise error
        assert "\n" not in str(caught.value)
    checkpoint.save_state(tmp_path, {}, [1, 2])  # type: ignore[arg-type]
    with pytest.raises(UserError, match="this version cannot resume this state"):
        checkpoint.read_values(tmp_path)


@pytest.mark.parametrize("name", ["CURRENT.json", "state-000001/values.json", "state-000001/tensors.safetensors"])
def test_pipes_are_not_waited_for(tmp_path: Path, name: str) -> None:
    checkpoint.save_state(tmp_path, {"a": torch.zeros(1)}, {})
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match="not a regular file"):
        checkpoint.load_state(tmp_path)
