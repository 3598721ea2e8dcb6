"""Sentence vectors inside a page."""

from __future__ import annotations

import numpy as np
import pytest

from seq2seq_attn.metrics.sentence_vectors import all_nearest, project
from seq2seq_attn.report import packed_vectors
from seq2seq_attn.report.packed_vectors import NUM_NEIGHBORS, pack_vectors


def vectors(seed, num_sentences=30, size=6):
    return np.random.default_rng(seed).normal(size=(num_sentences, size)).astype(np.float32)


def test_points_and_neighbors_are_those_of_the_vectors():
    of_runs = [vectors(0), None, vectors(1, size=9)]
    packed = pack_vectors(of_runs)
    assert packed["rows"] == list(range(30))
    assert packed["runs"][1] is None
    for vectors_NM, of_run in zip((of_runs[0], of_runs[2]), packed["runs"][::2], strict=True):
        seen = project(vectors_NM)
        assert of_run["size"] == vectors_NM.shape[1]
        np.testing.assert_allclose(of_run["points"], seen.points_NC, atol=5.1e-4)
        np.testing.assert_allclose(of_run["shares"], seen.shares_C, atol=5.1e-5)
        neighbors_NK, cosines_NK = all_nearest(vectors_NM, NUM_NEIGHBORS)
        assert of_run["nearest"] == neighbors_NK.tolist()
        np.testing.assert_allclose(of_run["cosines"], 100 * cosines_NK, atol=0.5001)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e4])
def test_vectors_of_any_size_keep_their_picture(scale):
    vectors_NM = (scale * vectors(0)).astype(np.float32)
    points = np.array(pack_vectors([vectors_NM])["runs"][0]["points"])
    np.testing.assert_allclose(points, project(vectors_NM).points_NC, atol=scale * 1e-3)
    assert len(np.unique(points, axis=0)) == 30


def test_sentences_without_a_vector_are_left_out_of_all_runs():
    first, second = vectors(0), vectors(1)
    first[[0, 7]] = 0.0
    second[7] = 0.0
    packed = pack_vectors([first, second])
    assert packed["rows"] == [row for row in range(30) if row not in (0, 7)]
    assert packed["runs"][1]["nearest"] == all_nearest(second[packed["rows"]], NUM_NEIGHBORS)[0].tolist()


def test_of_many_sentences_evenly_spaced_ones_are_taken(monkeypatch):
    monkeypatch.setattr(packed_vectors, "MAX_POINTS", 4)
    packed = pack_vectors([vectors(0, 31)])
    assert packed["rows"] == [0, 10, 20, 30]
    assert [sorted(near) for near in packed["runs"][0]["nearest"]] == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]


def test_nothing_to_pack():
    assert pack_vectors([None, None]) is None
    assert pack_vectors([np.zeros((3, 4), dtype=np.float32)]) == {
        "rows": [],
        "runs": [{"size": 4, "shares": [0.0, 0.0], "points": [], "nearest": [], "cosines": []}],
    }
