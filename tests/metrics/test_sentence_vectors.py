"""Principal components against the eigenvectors of the covariance; neighbors against plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

from seq2seq_attn.metrics import sentence_vectors
from seq2seq_attn.metrics.sentence_vectors import all_nearest, project


def vectors(num_vectors=40, size=7, seed=0):
    draw = np.random.default_rng(seed)
    spread = np.diag(np.arange(size, 0, -1.0))
    return draw.normal(size=(num_vectors, size)) @ spread @ draw.normal(size=(size, size)) + draw.normal(size=size)


def plain_cosine(one, other):
    norms = math.sqrt(sum(x * x for x in one)) * math.sqrt(sum(y * y for y in other))
    return sum(x * y for x, y in zip(one, other, strict=True)) / norms if norms else 0.0


def plain_nearest(rows, index, count):
    others = [place for place in range(len(rows)) if place != index]
    return sorted(others, key=lambda place: (-plain_cosine(rows[index], rows[place]), place))[:count]


@pytest.mark.parametrize(("num_vectors", "size"), [(40, 7), (5, 11), (300, 3)])
@pytest.mark.parametrize("num_components", [1, 2, 3])
def test_components_are_the_eigenvectors_of_the_covariance(num_vectors, size, num_components):
    rows_NM = vectors(num_vectors, size)
    found = project(rows_NM, num_components)
    values, axes = np.linalg.eigh(np.cov(rows_NM.T))
    values, axes = values[::-1], axes.T[::-1]
    np.testing.assert_allclose(found.shares_C, values[:num_components] / values.sum(), atol=1e-9)
    for axis, oracle in zip(found.axes_CM, axes, strict=False):
        np.testing.assert_allclose(axis, oracle * np.sign(oracle[np.abs(oracle).argmax()]), atol=1e-7)
    np.testing.assert_allclose(found.points_NC, (rows_NM - rows_NM.mean(axis=0)) @ found.axes_CM.T, atol=1e-9)
    np.testing.assert_allclose(found.points_NC.var(axis=0, ddof=1), values[:num_components], rtol=1e-7)


def test_signs_do_not_depend_on_the_order_of_the_sentences():
    rows_NM = vectors()
    found, turned = project(rows_NM), project(rows_NM[::-1])
    np.testing.assert_allclose(turned.points_NC[::-1], found.points_NC, atol=1e-9)
    assert (found.axes_CM[np.arange(2), np.abs(found.axes_CM).argmax(axis=1)] > 0).all()


def test_points_on_a_line_and_points_that_are_one():
    line_NM = np.outer([-1.0, 0.0, 3.0], [0.6, 0.8])
    found = project(line_NM)
    np.testing.assert_allclose(found.shares_C, [1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.points_NC[:, 0], np.array([-1.0, 0.0, 3.0]) - 2 / 3, atol=1e-12)
    np.testing.assert_allclose(found.points_NC[:, 1], 0.0, atol=1e-12)
    for same_NM in (np.ones((4, 3)), np.ones((1, 3)), np.zeros((0, 3)), np.ones((4, 1))):
        found = project(same_NM)
        assert found.points_NC.shape == (len(same_NM), 2)
        np.testing.assert_allclose(found.points_NC, 0.0, atol=1e-12)
        np.testing.assert_array_equal(found.shares_C, 0.0)


@pytest.mark.parametrize("block", [7, 512])
def test_neighbors_are_those_of_plain_python(monkeypatch, block):
    monkeypatch.setattr(sentence_vectors, "_BLOCK_ROWS", block)
    rows_NM = vectors(30, 5, seed=2)
    rows_NM[4] = 2.0 * rows_NM[21]  # a tie for everybody else, and each other's first
    rows_NM[9] = 0.0
    neighbors_NK, cosines_NK = all_nearest(rows_NM, 6)
    assert neighbors_NK.shape == (30, 6)
    for index, row in enumerate(rows_NM.tolist()):
        expected = plain_nearest(rows_NM.tolist(), index, 6)
        near = [plain_cosine(row, rows_NM[place].tolist()) for place in expected]
        np.testing.assert_allclose(cosines_NK[index], near, atol=1e-12)
        if index not in (4, 9, 21) and not {4, 21} & set(expected):
            assert neighbors_NK[index].tolist() == expected
        assert index not in neighbors_NK[index]
    assert neighbors_NK[4, 0] == 21
    assert neighbors_NK[21, 0] == 4
    assert neighbors_NK[9].tolist() == [0, 1, 2, 3, 4, 5]


def test_no_cosine_is_beyond_one():
    directions_NM = vectors(100, 16)
    parallel_NM = np.concatenate([directions_NM, 3.0 * directions_NM, -directions_NM])
    _, cosines_NK = all_nearest(parallel_NM, len(parallel_NM))
    assert (cosines_NK.min(), cosines_NK.max()) == pytest.approx((-1.0, 1.0))
    assert (np.abs(cosines_NK) <= 1.0).all()


def test_there_are_no_more_neighbors_than_others():
    neighbors_NK, cosines_NK = all_nearest(np.eye(3), 8)
    assert neighbors_NK.tolist() == [[1, 2], [0, 2], [0, 1]]
    assert cosines_NK.tolist() == [[0.0, 0.0]] * 3
    assert all_nearest(np.ones((1, 4)), 8)[0].shape == (1, 0)
    assert all_nearest(np.ones((0, 4)), 8)[0].shape == (0, 0)


def test_what_is_no_matrix_of_numbers_is_refused():
    for wrong in (np.ones(3), np.array([[np.nan, 1.0]]), np.ones((2, 2, 2))):
        with pytest.raises(ValueError, match="expected finite vectors as rows of a matrix, got shape"):
            project(wrong)
        with pytest.raises(ValueError, match="expected finite vectors"):
            all_nearest(wrong, 2)
