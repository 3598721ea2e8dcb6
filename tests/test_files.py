"""Atomic writes: the mode of the file, and what stands at its name."""

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest

from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import atomic_path, check_writable, link_target, named_path, write_text
from seq2seq_attn.leftovers import (
    remove_leftovers,
    replaced_folder,
    temporary_folder,
    temporary_name,
)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_has_the_mode_that_the_user_wants(tmp_path, umask, mode):
    former = os.umask(umask)
    try:
        write_text(tmp_path / "file", "text")
    finally:
        os.umask(former)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_a_user_names_keeps_its_mode(tmp_path):
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o640)
    write_text(path, "new", is_named=True)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)


def test_a_private_file_is_private_while_it_is_written(tmp_path):
    (tmp_path / "out").write_text("old")
    (tmp_path / "out").chmod(0o600)
    with named_path(tmp_path / "out") as temporary:
        assert temporary.stat().st_mode & 0o777 == 0o600


def test_a_long_name_can_be_written(tmp_path):
    path = tmp_path / ("a" * 245)
    with atomic_path(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_a_link_is_replaced(tmp_path):
    """Run directories come from strangers too: a link there must not lead a write out of them."""
    (tmp_path / "elsewhere").write_text("old")
    (tmp_path / "file").symlink_to(tmp_path / "elsewhere")
    write_text(tmp_path / "file", "new")
    assert not (tmp_path / "file").is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "old"


def test_a_link_that_a_user_names_is_written_through(tmp_path):
    (tmp_path / "file").symlink_to(tmp_path / "elsewhere")
    write_text(tmp_path / "file", "new", is_named=True)
    assert (tmp_path / "file").is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "new"


def test_a_pipe_that_a_user_names_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text(tmp_path / "pipe", "new", is_named=True)
        assert os.read(reader, 100) == b"new"
    finally:
        os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_a_pipe_is_written_through_its_link_in_dev():
    """`-o /dev/stdout | cat` and `-o >(cat)`: the link's target, `pipe:[1234]`, is no path."""
    read_end, write_end = os.pipe()
    path = Path(f"/dev/fd/{write_end}")
    check_writable(link_target(path))
    with named_path(path) as writable:
        writable.write_text("text")
    os.close(write_end)
    with os.fdopen(read_end) as file:
        assert file.read() == "text"


def leftover_of(folder, name, age_s=61.0):
    """A temporary file of a killed process."""
    path = temporary_name(folder / name)
    path.write_text("half")
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_the_next_write_removes_what_a_killed_one_left(tmp_path):
    old = leftover_of(tmp_path, "a[**]?.txt")
    young = leftover_of(tmp_path, "a[**]?.txt", age_s=0)
    other = leftover_of(tmp_path, "ab.txt")
    write_text(tmp_path / "a[**]?.txt", "text")
    assert not old.exists()
    assert young.exists()
    assert other.exists()


@pytest.mark.parametrize("make", [atomic_path, temporary_folder])
def test_what_a_living_process_writes_is_kept_whatever_the_clock_says(tmp_path, make):
    with make(tmp_path / "name") as temporary:
        os.utime(temporary, (0, 0))
        remove_leftovers(tmp_path, "*")
        assert temporary.exists()
        if temporary.is_file():
            temporary.write_text("whole")


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    folder = tmp_path / "out"
    for name in ("a.txt", "b.txt"):
        with replaced_folder(folder, ["*.txt"]) as temporary:
            (temporary / name).write_text(name)
            assert not (folder / "b.txt").exists()
    assert [path.name for path in folder.iterdir()] == ["b.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_with_other_files_is_not_replaced(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(UsageError, match=r"thesis\.tex"), replaced_folder(tmp_path, ["*.txt"]):
        pass
    assert (tmp_path / "thesis.tex").exists()


def test_a_failure_keeps_the_old_folder(tmp_path):
    (tmp_path / "out").mkdir()
    with suppress(KeyboardInterrupt), replaced_folder(tmp_path / "out", ["*"]) as temporary:
        (temporary / "new").touch()
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.rglob("*")] == ["out"]
