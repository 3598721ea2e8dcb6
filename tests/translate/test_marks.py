"""Marks of tags go where they separate the words of the translation as those of the line."""

import numpy as np
import pytest

from seq2seq_attn import load
from seq2seq_attn.translate.marks import put_marks
from seq2seq_attn.translate.translation import EOS_TOKEN, Translation
from tests.toy_run import SOURCE, make_toy_run


@pytest.mark.parametrize(
    ("line", "heaviest", "text"),
    [
        ("a ⟦1⟧ b ⟦2⟧ c .", [0, 1, 2, 3], "A ⟦1⟧ B ⟦2⟧ C."),
        ("a b c . ⟦1⟧ ⟦2⟧", [0, 1, 2, 3], "A B C. ⟦1⟧ ⟦2⟧"),
        ("a ⟦1⟧ b c .", [1, 2, 0, 3], "⟦1⟧ A B C."),
        ("a b ⟦1⟧ c ⟦2⟧ .", [2, 0, 1, 3], "A B C ⟦1⟧ ⟦2⟧ ."),
        ("⟦1⟧ a b ⟦2⟧ c .", [4, 4, 4, 4], "⟦1⟧ ⟦2⟧ A B C."),
        ("a ⟦1⟧ b c .", None, "A B C."),
        ("a ⟦1⟧ bb c .", [0, 1, 2, 3], "A B C."),
    ],
)
def test_a_mark_separates_words_as_in_the_line(line, heaviest, text):
    translation = Translation(
        "A B C.", [*"ABC."], 0.0, 0.0, [*"abc.", EOS_TOKEN], None, True, heaviest
    )
    assert put_marks(line, translation).text == text


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("un⟦1⟧re⟦2⟧al c", "C ⟦1⟧ REAL ⟦2⟧"),
        ("un⟦1⟧real⟦2⟧ c", "⟦1⟧ ⟦2⟧ C REAL"),
        ("unreal c⟦1⟧c", "⟦1⟧ C REAL"),
    ],
)
def test_a_mark_inside_a_word_is_put_at_its_border(line, text):
    tokens = ["unreal", "cc" if "cc" in line.replace("⟦1⟧", "") else "c", EOS_TOKEN]
    translation = Translation("C REAL", ["C", "REAL"], 0.0, 0.0, tokens, None, True, [1, 0])
    assert put_marks(line, translation).text == text


def test_the_model_reads_a_line_without_its_marks(tmp_path):
    translator = load(make_toy_run(tmp_path / "run").path, "cpu")
    words = SOURCE[0].split()
    marked = f"{words[0]} ⟦1⟧ {' '.join(words[1:])} ⟦2⟧"
    inside = f"⟦1⟧ {SOURCE[0][:1]}⟦2⟧{SOURCE[0][1:]}"
    lines = [SOURCE[0], marked, SOURCE[1], inside]
    plain, with_marks, other, with_mark_inside = translator.translate(lines)
    assert with_marks.text.replace("⟦1⟧ ", "").replace(" ⟦2⟧", "") == plain.text
    assert other.text == translator.translate([SOURCE[1]])[0].text
    assert np.isclose(with_marks.log_prob, plain.log_prob)
    assert with_mark_inside.tokens == plain.tokens
