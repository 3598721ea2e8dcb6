"""Atomic writes: the mode of the file, and what stands at its name."""

import os
from pathlib import Path

import pytest

from seq2seq_attn.files import atomic_path, check_writable, link_target, named_path, write_text


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
