"""Attention maps: labels, the terminal picture, the .npz."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest

from scripts.laboratory.attention_text import attention_text
from seq2seq_attn.report.tables import display_width
from seq2seq_attn.translate.attention_map import MAP_NOTE, AttentionMap
from tests.report.conftest import make_map


def test_a_row_or_column_beyond_the_tokens_is_eos():
    attention = AttentionMap.of(["a", "b", "<eos>"], ["x"], np.eye(2, 3))
    assert attention.source_tokens == ["a", "b", "<eos>"]
    assert attention.target_tokens == ["x", "<eos>"]
    with pytest.raises(ValueError, match="do not fit 1 tokens"):
        AttentionMap.of(["a", "b", "c"], ["x"], np.eye(3))


def test_the_picture_by_hand():
    weights_TS = np.array([[0.9, 0.1, 0.0], [0.3, 0.5, 0.2]])
    text = attention_text(AttentionMap(["Der", "Hund", "."], ["The", "dog"], weights_TS), width=80)
    assert text.split("\n") == [
        "       H",
        "     D u",
        "     e n",
        "     r d .",
        "The  ██░░    Der",
        "dog  ▒▒▓▓▒▒  Hund",
        "",
        "weight: ░ 0.05+  ▒ 0.2+  ▓ 0.4+  █ 0.7+",
        *textwrap.wrap(MAP_NOTE, 80),
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("num_source", [1, 5, 20, 60, 150])
def test_the_picture_keeps_to_the_width_and_shows_every_column(width, num_source):
    attention = make_map(num_source, 9)
    text = attention_text(attention, width=width)
    assert max(map(display_width, text.split("\n"))) <= width
    blocks = text.split("\n\n")[:-1]
    assert all(sum(line.lstrip().startswith("word") for line in block.split("\n")) == 9 for block in blocks)
    assert "".join(blocks).count("█") in (9, 18)  # each row's one dark cell, one or two columns wide


def test_a_sentence_of_sixty_fits_the_terminal_in_one_block():
    assert len(attention_text(make_map(60, 10), width=80).split("\n\n")) == 2


def test_hostile_tokens_keep_to_their_line():
    attention = AttentionMap(["a\nb", "\u202e", "日本語", ""], ["x\r\n", "y" * 40], np.full((2, 4), 0.25))
    text = attention_text(attention, width=60)
    assert "\r" not in text
    assert max(map(display_width, text.split("\n"))) <= 60
    assert f"{'y' * 13}…" in text
    wide = AttentionMap(["日" * 14] * 12, ["本" * 14] * 3, np.full((3, 12), 0.25))
    assert max(map(display_width, attention_text(wide, width=40).split("\n"))) <= 40


def test_no_target_tokens():
    assert "weight:" in attention_text(AttentionMap(["<eos>"], [], np.zeros((0, 1))))
