"""Tables of an audit; the length limit on translations follows from the training pairs."""

import re

import numpy as np
import pytest

from seq2seq_attn.data.audit import audit_tables, describe_ratios, limiting_ratio
from seq2seq_attn.data.store import PairStore, SequenceStore, SequenceWriter


@pytest.fixture
def pairs_of(tmp_path):
    def make(*lengths):
        for side, of_side in zip(("source", "target"), zip(*lengths, strict=True), strict=True):
            SequenceWriter(tmp_path / side).add(
                np.zeros(sum(of_side), dtype=np.int32), np.array(of_side)
            )
        return PairStore(SequenceStore(tmp_path / "source"), SequenceStore(tmp_path / "target"))

    return make


@pytest.mark.parametrize(
    ("lengths", "extra", "ratio"),
    [
        ([(10, 10), (1, 9), (20, 30)], 10, 2.0),  # ordinary pairs keep the least ratio
        ([(10, 10), (20, 100)], 10, 5.69),  # 100 tokens and EOS, 10 of them extra: 91 / 20 * 1.25
        ([(1, 10_000)], 0, 1000.0),
    ],
)
def test_long_targets_raise_the_ratio_with_room_to_spare(pairs_of, lengths, extra, ratio):
    assert limiting_ratio(pairs_of(*lengths), extra=extra) == ratio


def test_ratios_are_described_by_quantiles_and_the_highest(pairs_of):
    text = describe_ratios(pairs_of(*[(10, 10)] * 98, (10, 20), (4, 19)))
    assert re.findall(r"[\d.]+", text) == "1 1.00 50 1.00 99 2.00 4.75 19 4".split()


def test_the_audit_as_tables():
    side = {"tokens": 3, "types": 3, "longest": 2, "oov_rate": 1 / 3}
    split = {
        "pairs_read": 3,
        "pairs_kept": 1,
        "blank": 1,
        "over_long": 1,
        "ratio_outliers": 0,
        "copies": 2,
        "duplicates": 0,
        "overlap_pairs": 0,
        "overlap_sources": 1,
        "source": side,
        "target": side,
    }
    table = audit_tables({"train": split, "valid": split})
    assert table[1].split() == "train 3 1 1 1 0 2 0 - -".split()
    assert table[2].split() == "valid 3 1 1 1 0 2 0 0 1".split()
    assert table[5].split() == "train source 3 3 2 33.33 %".split()
