"""Lines are cut where sentences end, batched in bounded chunks, and joined source by source."""

from dataclasses import replace

import numpy as np
import pytest

from seq2seq_attn.text.tokenizers.base import SpaceTokenizer
from seq2seq_attn.text.tokenizers.several import SeveralSources
from seq2seq_attn.text.tokenizers.source import split_tokens
from seq2seq_attn.translate.segments import chunks, join_translations
from seq2seq_attn.translate.translation import Translation


@pytest.mark.parametrize(
    ("max_length", "segments"),
    [
        (3, ["a b c"]),
        (5, ["a b .", "c d . e f"]),
        (5, ["क ख ग।", "क ख ग घ"]),
        (4, ["▁a b ▁c d", "e ▁f"]),
        (4, ["▁a b c", "▁d e ▁f"]),
        (3, ["a b c", "d e f", "g"]),
        (1, ["a", "b", "c"]),
    ],
)
def test_split_prefers_the_end_of_a_sentence_then_of_a_word(max_length, segments):
    tokens = " ".join(segments).split()
    assert split_tokens(tokens, max_length) == [segment.split() for segment in segments]


def make_part(target, source, heaviest):
    tokens = target.split()
    return Translation(
        text=target,
        tokens=tokens,
        score=-1.0,
        log_prob=-1.0,
        source_tokens=[*source.split(" "), "<eos>"],
        attention=np.eye(4, dtype=np.float32)[heaviest],
        is_finished=True,
        heaviest=heaviest[: len(tokens)],
    )


def test_segments_of_several_sources_are_joined_source_by_source():
    """Each target token attends to the token of its own segment and source: t0 to a, t1 to y, t2 to
    b."""
    first = make_part("t0 t1", "a \t x", [0, 3])
    second = make_part("t2", "b \t y", [2, 1])
    parts = [first, replace(second, unknown_positions=(0,))]
    source = SeveralSources(["de", "fr"], [SpaceTokenizer(), SpaceTokenizer()])
    joined = join_translations(parts, source)
    assert joined.source_tokens == ["a", "b", "\t", "x", "y", "<eos>"]
    assert joined.attention.argmax(axis=1).tolist() == [0, 5, 4, 2]
    np.testing.assert_array_equal(joined.attention.sum(axis=1), 1.0)
    assert joined.heaviest == [0, 5, 4]
    assert joined.links() == [(0, 0), (4, 2)]
    assert joined.unknown_positions == (1,)
    labelled = joined.attention_map()
    assert labelled.source_tokens == "a b <eos> x y <eos>".split()
    assert labelled.target_tokens == ["t0", "t1", "t2", "<eos>"]


def test_the_more_translations_of_a_line_the_smaller_the_chunks():
    lines = ["a dog"] * 5_000
    assert max(map(len, chunks(lines))) > 1_000
    pieces = list(chunks(lines, num_results=100))
    assert sum(map(len, pieces)) == 5_000
    assert max(map(len, pieces)) < 50
