"""Files of vectors: read, named as tokens, hashed; damaged ones are refused."""

import zipfile

import numpy as np
import pytest

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.tokenizers.base import SpaceTokenizer
from seq2seq_attn.text.tokenizers.several import SeveralSources
from seq2seq_attn.text.tokenizers.vectors import (
    MAX_BYTES,
    VectorSource,
    hash_vectors,
    read_vectors,
)

ARRAY = np.arange(6, dtype=np.float64).reshape(3, 2)


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "one.npy", ARRAY)
    return str(tmp_path / "one.npy")


def test_the_read_token_vectors_by_their_numbers(file, tmp_path):
    tokens = VectorSource(2).tokenize(f" {file}\n")
    assert (tokens, VectorSource(2).tokenize(" ")) == (["[1]", "[2]", "[3]"], [])
    assert VectorSource(2).vectors(file, tokens[1:]).tolist() == ARRAY[1:].tolist()
    np.save(tmp_path / "one.npy", ARRAY[:2])
    with pytest.raises(UserError, match=r"one\.npy: changed"):
        VectorSource(2).vectors(file, tokens)


def test_positions_of_vectors_and_words_of_a_line(file):
    tokenizer = SeveralSources(["de", "vectors"], [SpaceTokenizer(), VectorSource(2)])
    line = f"ein\u00a0Hund\t{file}"
    tokens = tokenizer.tokenize(line)
    assert tokens == ["ein", "Hund", "\t", "[1]", "[2]", "[3]"]
    assert tokenizer.vector_positions(tokens) == range(3, 6)
    assert VectorSource(2).vector_positions(["[1]"]) == range(1)
    assert not SpaceTokenizer().vector_positions(["[1]"])
    assert not tokenizer.vector_positions([])
    assert tokenizer.words(line, tokens) == ["ein\u00a0Hund", "[1]", "[2]", "[3]"]
    assert SpaceTokenizer().words("10\u00a0€ [1]", ["10", "€", "[1]"]) == [
        "10\u00a0€",
        "[1]",
    ]
    assert tokenizer.words("", []) == []


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64", "uint8", ">f8"])
def test_any_numbers_are_read_as_float32(dtype, tmp_path):
    np.save(tmp_path / "x.npy", np.asfortranarray(ARRAY.astype(dtype)))
    np.savez_compressed(tmp_path / "x.npz", key=ARRAY.astype(dtype))
    for name in ("x.npy", "x.npz:key"):
        found = read_vectors(str(tmp_path / name))
        assert found.dtype == np.float32
        assert found.tolist() == ARRAY.tolist()


def test_a_replaced_archive_is_read_anew(tmp_path):
    path = tmp_path / "x.npz"
    for shift in (0.0, 1.0):
        np.savez(path, **{"a": ARRAY + shift, "more" * int(shift + 1): ARRAY})
        assert read_vectors(f"{path}:a").tolist() == (ARRAY + shift).tolist()


def test_the_hash_is_of_what_the_files_hold(tmp_path):
    for name, array in (("a", ARRAY), ("b", ARRAY), ("c", ARRAY + 1)):
        np.save(tmp_path / f"{name}.npy", array)
    a, b, c = (str(tmp_path / f"{name}.npy") for name in "abc")
    assert hash_vectors([a, c]) == hash_vectors([b, c])
    assert len({hash_vectors(files) for files in ([a, c], [c, a], [a, "", c], [a, a])}) == 4
    for name in (str(tmp_path / "none.npy"), "a\0b.npy"):
        with pytest.raises(UserError, match=r"none\.npy|null byte"):
            hash_vectors([name])


@pytest.mark.parametrize("size", [0, -1, 65_537, 2.0, "2", None])
def test_a_size_out_of_bounds_is_refused(size):
    with pytest.raises(ValueError, match="vectors of"):
        VectorSource(size)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2),
        np.full((3, 2), np.nan),
        np.full((3, 2), 1e300),
        np.full((3, 2), "a"),
        np.full((3, 2), None),
        np.frombuffer(b"\1\0\0\0\0\0\xf0\x7f" * 2).reshape(1, 2),  # a signaling NaN
    ],
)
def test_arrays_that_are_no_vectors_are_refused(array, tmp_path):
    np.save(tmp_path / "bad.npy", array, allow_pickle=True)
    with pytest.raises(UserError, match=r"bad\.npy: "):
        read_vectors(str(tmp_path / "bad.npy"))
    np.save(tmp_path / "wide.npy", np.zeros((2, 3)))
    with pytest.raises(UserError, match=r"wide\.npy: "):
        VectorSource(2).tokenize(str(tmp_path / "wide.npy"))


def test_an_archive_of_a_huge_array_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("a.npy", "w", force_zip64=True) as stream:
            header = {"descr": "|u1", "fortran_order": False, "shape": (MAX_BYTES // 4, 4)}
            np.lib.format.write_array_header_1_0(stream, header)
            for _ in range(MAX_BYTES >> 20):
                stream.write(bytes(1 << 20))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(UserError, match=rf"huge\.npz:a.*{MAX_BYTES:,}"):
        read_vectors(f"{path}:a")
    with (tmp_path / "sparse.npy").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match=r"sparse\.npy"):
        read_vectors(str(tmp_path / "sparse.npy"))
