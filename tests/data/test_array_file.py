"""Arrays written bit by bit."""

from __future__ import annotations

import io

import numpy as np
import pytest

from seq2seq_attn.data.array_file import ArrayWriter, append_raw, read_raw


@pytest.mark.parametrize("size", [0, 1, 9, 10, 99_999, 100_000, 1_234_567])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_bytes_of_numpy(tmp_path, size, dtype):
    values = np.arange(size, dtype=dtype)
    writer = ArrayWriter(tmp_path / "x.npy", dtype)
    for part in np.array_split(values, 4):
        writer.append(part)
    assert np.load(tmp_path / "x.npy").size == 0
    writer.finish()
    expected = io.BytesIO()
    np.save(expected, values)
    assert (tmp_path / "x.npy").read_bytes() == expected.getvalue()


def test_values_are_cast(tmp_path):
    writer = ArrayWriter(tmp_path / "x.npy", np.int32)
    writer.append(np.array([1, 2], dtype=np.int64))
    writer.finish()
    found = np.load(tmp_path / "x.npy")
    assert (found.dtype, found.tolist()) == (np.int32, [1, 2])


def test_raw_files(tmp_path):
    path = tmp_path / "raw"
    path.touch()
    assert list(read_raw(path, np.int32, 4)) == []
    for part in ([1, 2, 3], [], [4, 5]):
        append_raw(path, np.array(part, dtype=np.int32))
    assert [block.tolist() for block in read_raw(path, np.int32, 4)] == [[1, 2, 3, 4], [5]]
