"""Sentence vectors in pictures: their first principal components, and nearest neighbors in all dimensions.

Sutskever, Vinyals and Le 2014, "Sequence to sequence learning with neural networks", Fig. 2, project the vectors that
their encoder makes of phrases by PCA: sentences with the same meaning lie close together, and word order matters.

Shapes: N sentences, M vector size, C components, K neighbors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.int64]

_BLOCK_ROWS = 512


@dataclass(frozen=True, eq=False)
class Projection:
    """Vectors seen along their principal components, the largest first."""

    points_NC: npt.NDArray[np.float64]
    """coordinates, in the vectors' own unit, around their mean"""
    axes_CM: npt.NDArray[np.float64]
    """orthonormal; the largest loading of each is positive, so that no picture is mirrored by chance"""
    shares_C: npt.NDArray[np.float64]
    """of the vectors' variance, the share along each axis; 0 where there is no variance"""


def project(vectors_NM: FloatArray, num_components: int = 2) -> Projection:
    """Principal component analysis by singular value decomposition of the centered vectors. Where the vectors do not
    span `num_components` dimensions, the last coordinates and shares are 0.

    Raises:
        ValueError: vectors that are not finite, or not a matrix.
    """
    vectors_NM = _checked(vectors_NM)
    num_vectors, size = vectors_NM.shape
    points_NC = np.zeros((num_vectors, num_components))
    axes_CM = np.zeros((num_components, size))
    shares_C = np.zeros(num_components)
    if num_vectors and size:
        centered_NM = vectors_NM - vectors_NM.mean(axis=0)
        _, singular, components = np.linalg.svd(centered_NM, full_matrices=False)
        rank = min(num_components, len(components))
        largest = np.abs(components[:rank]).argmax(axis=1)
        signs = np.where(components[np.arange(rank), largest] < 0.0, -1.0, 1.0)
        axes_CM[:rank] = components[:rank] * signs[:, None]
        points_NC = centered_NM @ axes_CM.T
        variance = float((singular**2).sum())
        if variance > 0.0:
            shares_C[:rank] = singular[:rank] ** 2 / variance
    return Projection(points_NC, axes_CM, shares_C)


def all_nearest(vectors_NM: FloatArray, num_neighbors: int) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """For each vector the indices of the `num_neighbors` others with the largest cosine, [N, K], largest first (the
    first of equals), and those cosines, [N, K]. K is at most N - 1. A vector of zeros has cosine 0 with any other.

    Raises:
        ValueError: vectors that are not finite, or not a matrix.
    """
    unit_NM = _unit(_checked(vectors_NM))
    starts = range(0, len(unit_NM), _BLOCK_ROWS)
    blocks = [_top(unit_NM, slice(start, start + _BLOCK_ROWS), num_neighbors) for start in starts]
    if not blocks:
        return np.zeros((0, 0), dtype=np.int64), np.zeros((0, 0))
    return np.concatenate([block[0] for block in blocks]), np.concatenate([block[1] for block in blocks])


def _top(unit_NM: FloatArray, rows: slice, num_neighbors: int) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """The neighbors of the chosen rows, from one block of the N x N cosines."""
    cosines_BN = (unit_NM[rows] @ unit_NM.T).astype(np.float64)
    indices_B = np.arange(*rows.indices(len(unit_NM)))
    cosines_BN[np.arange(len(indices_B)), indices_B] = -np.inf  # no vector is its own neighbor
    count = max(0, min(num_neighbors, len(unit_NM) - 1))
    order_BK = np.argsort(-cosines_BN, axis=1, kind="stable")[:, :count]
    return order_BK.astype(np.int64), np.clip(np.take_along_axis(cosines_BN, order_BK, axis=1), -1.0, 1.0)


def _unit(vectors_NM: FloatArray) -> FloatArray:
    norms_N1 = np.linalg.norm(vectors_NM, axis=1, keepdims=True)
    return vectors_NM / np.where(norms_N1 == 0.0, 1.0, norms_N1)


def _checked(vectors_NM: FloatArray) -> npt.NDArray[np.float64]:
    vectors = np.asarray(vectors_NM, dtype=np.float64)
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise ValueError(f"expected finite vectors as rows of a matrix, got shape {vectors.shape}")
    return vectors
