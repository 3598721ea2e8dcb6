"""Each file of a folder is the one that was listed, whatever happens while it is written or
read."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from seq2seq_attn import files
from seq2seq_attn.errors import UserError
from seq2seq_attn.files import (
    MANIFEST,
    ListedFiles,
    check_files,
    list_files,
    remove_listed,
    write_listed,
)


def read_listed(path):
    return ListedFiles(path.parent).read(path.name)


def check_folder(path):
    check_files(path.parent)


def test_files_come_back_and_are_listed_beside_those_before(tmp_path):
    path = tmp_path / "folder" / "a"
    for content in (b"one", b"two", b""):
        write_listed(path, content)
        assert read_listed(path) == content
    assert check_files(path.parent) == {"a": files.sha256_of(path)}
    assert {one.name for one in path.parent.iterdir()} == {"a", MANIFEST}
    path.with_name("b").write_bytes(b"2")
    list_files(path.parent, [path.with_name("b")])
    assert check_files(path.parent).keys() == {"a", "b"}
    assert check_files(path.parent, prefix="b").keys() == {"b"}
    remove_listed(path)
    assert check_files(path.parent).keys() == {"b"}


def test_a_flipped_bit_of_the_manifest_loses_or_changes_no_file(tmp_path):
    """`tests/e2e/test_bit_flips.py` flips bits of every file."""
    path = tmp_path / MANIFEST
    write_listed(tmp_path / "file", b"content")
    whole = path.read_bytes()
    for number in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[number // 8] ^= 1 << number % 8
        path.write_bytes(damaged)
        with suppress(UserError):
            assert read_listed(tmp_path / "file") == b"content"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "5",
        '{"file": 5}',
        '{"file": null}',
        '{"a\\u0000": []}',
        '[["file", []]]',
        "[" * 100_000,
    ],
)
def test_a_foreign_manifest_is_refused_in_one_line(tmp_path, text):
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / MANIFEST).write_text(text)
    for use in (read_listed, check_folder, remove_listed):
        with pytest.raises(UserError, match=rf"{tmp_path / MANIFEST}: ") as caught:
            use(tmp_path / "file")
        assert "\n" not in str(caught.value)


def test_a_file_that_is_missing_or_no_file_is_named(tmp_path):
    path = tmp_path / "file"
    write_listed(path, b"content")
    path.unlink()
    for _ in ("missing", "a pipe"):
        for read in (read_listed, check_folder):
            with pytest.raises(UserError, match=str(path)):
                read(path)
        os.mkfifo(path) if not path.exists() else None


@pytest.mark.parametrize("call", range(1, 7))
@pytest.mark.parametrize("owner", [os, Path], ids=["fsync", "replace"])
def test_a_process_that_dies_leaves_the_old_file_or_the_new_one(tmp_path, monkeypatch, owner, call):
    """Also if one before it died at the same place."""
    path = tmp_path / "file"
    write_listed(path, b"0")
    step = "fsync" if owner is os else "replace"
    real = getattr(owner, step)
    for number in (1, 2, 3):
        calls = iter(range(1, 99))

        def die(*arguments, calls=calls):
            if next(calls) == call:  # type: ignore[call-overload]
                raise KeyboardInterrupt
            return real(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(owner, step, die)
            try:
                write_listed(path, str(number).encode())
            except KeyboardInterrupt:
                pass
        assert read_listed(path) in (b"0", str(number).encode())
    write_listed(path, b"4")
    assert read_listed(path) == b"4"
    assert check_files(tmp_path).keys() == {"file"}


@pytest.mark.parametrize("step", ["replace", "unlink"])
def test_a_process_that_dies_while_it_removes_a_file_leaves_a_whole_folder(
    tmp_path, monkeypatch, step
):
    write_listed(tmp_path / "file", b"content")

    def die(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, step, die)
        with pytest.raises(KeyboardInterrupt):
            remove_listed(tmp_path / "file")
    check_files(tmp_path)


def test_a_file_is_on_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    """And so are the manifest and its name, in case the machine loses power."""
    synced = set()
    fsync, replace = os.fsync, Path.replace

    def note_sync(handle):
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    def check_synced(path, target):
        assert path.stat().st_ino in synced
        if target.name == "file":
            assert {tmp_path.stat().st_ino, (tmp_path / MANIFEST).stat().st_ino} <= synced
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", check_synced)
    write_listed(tmp_path / "file", b"content")


def test_a_reader_sees_one_content_while_another_process_replaces_it(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_listed(path, b"old")
    real = files.read_regular

    def overtaken(path):
        if path.name == "file" and real(path) == b"old":
            write_listed(path, b"new")
        return real(path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "read_regular", overtaken)
        assert read_listed(path) == b"new"
    hashed = files.sha256_of

    def hash_overtaken(path):
        if real(path) == b"new":
            write_listed(path, b"newer")
        return hashed(path)

    monkeypatch.setattr(files, "sha256_of", hash_overtaken)
    assert check_files(tmp_path) == {"file": files.sha256_of(path)}
