"""Word vectors from the formats of word2vec, GloVe and fastText, and what is wrong with other
files."""

import gzip
import re

import numpy as np
import pytest

from seq2seq_attn.errors import UserError
from seq2seq_attn.text.word_vectors import read_word_vectors, vector_size

TOKENS = ["Hund", "hund", "Das", "katze", "fehlt"]
LINES = [
    "Hund 1 2 3",
    "KATZE -4 5e-1 6",
    "das 7 8 9",
    "Katze 0 0 1",
    ". . . 1 1 1",
    "hund 2 2 2",
    "Hund 9 9 9",
]


def write(tmp_path, *lines, name="x.vec"):
    path = tmp_path / name
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


@pytest.mark.parametrize("header", [[], ["7 3"]])
@pytest.mark.parametrize("end", ["", " "])
@pytest.mark.parametrize("name", ["x.vec", "x.txt.gz"])
def test_the_first_vector_of_a_token_counts_and_its_own_case_before_others(
    tmp_path, header, end, name
):
    path = write(tmp_path, *header, *(line + end for line in LINES), name=name)
    assert vector_size(path) == 3
    found = read_word_vectors(path, TOKENS, 3)
    assert found.indices.tolist() == [0, 1, 2, 3]
    assert found.vectors.dtype == np.float32
    assert found.vectors.tolist() == [[1, 2, 3], [2, 2, 2], [7, 8, 9], [-4, 0.5, 6]]
    assert found.num_by_case == 2
    assert read_word_vectors(path, ["dog", "cat"], 3).vectors.shape == (0, 3)


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        (["Hund 1 2 3", "Katze 1 2"], 2),
        (["Hund 1 2 3", "hund 1 2 zwei"], 2),
        (["2 3", "Hund 1 nan 3"], 2),
        (["Hund 1 2 1e60"], 1),
    ],
)
def test_a_damaged_line_is_named(tmp_path, lines, number):
    with pytest.raises(UserError, match=rf"x\.vec, line {number}"):
        read_word_vectors(write(tmp_path, *lines), TOKENS, 3)


@pytest.mark.parametrize("line", ["", "Hund", "Hund a b", "2 " + "9" * 5_000])
def test_a_file_that_is_something_else(tmp_path, line):
    path = write(tmp_path, line)
    with pytest.raises(UserError, match=re.escape(f"{path}, line 1")):
        vector_size(path)


def test_a_file_that_is_not_there_or_not_text(tmp_path):
    with pytest.raises(UserError, match=r"absent\.vec"):
        vector_size(tmp_path / "absent.vec")
    (tmp_path / "binary.bin").write_bytes(b"2 3\nHund \x00\xff\xfe\x80\x3f\n")
    with pytest.raises(UserError, match="line 2"):
        read_word_vectors(tmp_path / "binary.bin", TOKENS, 3)
