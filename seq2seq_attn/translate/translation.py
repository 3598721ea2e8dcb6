"""The translation of a line, with its score and attention.

Shapes: T target positions, S source positions.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from seq2seq_attn.text.marks import SOURCE_END, SPACE
from seq2seq_attn.text.vocab import EOS, SPECIALS
from seq2seq_attn.translate.attention_map import AttentionMap, Weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EOS_TOKEN = SPECIALS[EOS]
_MAX_REPR = 60
"""maximum number of characters of the text that `repr` shows"""


@dataclass(frozen=True, eq=False)
class Translation:
    """A translation of a line. A notebook shows its text and its attention.

    >>> [translation] = load("runs/quickstart").translate(["Der Hund schläft."])
    >>> translation.attention.shape  # target tokens and source tokens, with their ends
    (6, 5)
    >>> translation.source_tokens[translation.attention[1].argmax()]  # heaviest for "dog"
    'Hund'
    """

    text: str
    """the detokenized translation; never holds a line break or another control character"""
    tokens: list[str]
    """target tokens without EOS; with `unk="copy"`, UNKs are already replaced"""
    score: float
    """the score that ranks hypotheses, log_prob / length ** length_penalty, with the length in
    target tokens including EOS. A beam search adds the coverage penalty. With `method="mbr"`, the
    score is the expected chrF. For a line translated in segments, it is the sum over segments"""
    log_prob: float
    """natural logarithm of the translation's probability, EOS included"""
    source_tokens: list[str]
    """source tokens as the model read them; `<eos>` is last, and a tab ends each of several sources
    but the last"""
    attention: npt.NDArray[np.float32] | None
    """weights [T, S], with a row for each of `tokens`, a last row for EOS if the translation ended
    with EOS, and a column for each of `source_tokens`. None for a model without attention over
    source positions, and for a line of several segments above `segments.MAX_ATTENTION_CELLS`"""
    is_finished: bool
    """whether the translation ended with EOS"""
    heaviest: list[int] | None
    """argmax of the attention, the source position with the highest weight for each of `tokens`;
    None for a model without attention"""
    is_cut: bool = False
    """whether the length limit cut this translation, or another hypothesis with a higher score"""
    unknown_positions: tuple[int, ...] = ()
    """positions of the source tokens that are not in the run's vocabulary, or are unknown words"""
    unknown: tuple[str, ...] = ()
    """the source words that the model does not know"""
    warnings: tuple[str, ...] = ()
    """sentences that say why the translation may be wrong"""

    def links(self) -> list[tuple[int, int]]:
        """Return the hard alignment: a link from each target token to its heaviest source token.

        A link is (source position, target position). Links are in target order. A target token
        whose highest weight is on the end of a source has no link. (Links between words, in the
        file of `--alignment` and for alignment error rates, ignore the ends instead.)

        >>> [translation] = load("runs/quickstart").translate(["Der Hund schläft."])
        >>> (1, 1) in translation.links()  # from "Hund" to "dog"
        True

        Raises:
            ValueError: there is no attention.
        """
        if self.heaviest is None:
            raise ValueError("no attention over source positions, so no links")
        tokens = [*self.source_tokens[:-1], SOURCE_END]
        pairs = enumerate(self.heaviest)
        return [(source, target) for target, source in pairs if tokens[source] != SOURCE_END]

    def attention_map(self) -> AttentionMap | None:
        """Return the attention with the tokens as labels, or None without attention or tokens.

        >>> [translation] = load("runs/quickstart").translate(["Der Hund schläft."])
        >>> translation.attention_map().target_tokens
        ['The', 'dog', 'is', 'sleeping', '.', '<eos>']
        """
        if self.attention is None or not self.tokens:
            return None
        ends = [EOS_TOKEN] * (len(self.attention) - len(self.tokens))
        source = [EOS_TOKEN if token == SOURCE_END else token for token in self.source_tokens]
        return AttentionMap(source, [*self.tokens, *ends], self.attention, self.unknown_positions)

    def plot(self) -> Figure:
        """Draw the attention as a heat map.

        >>> [translation] = load("runs/quickstart").translate(["Der Hund schläft."])
        >>> translation.plot().savefig("map.pdf")

        Raises:
            ValueError: there is no attention to draw.
        """
        from seq2seq_attn.translate.heat_maps import attention_figure

        map = self.attention_map()
        return attention_figure([] if map is None else [map], [self.text])

    def __repr__(self) -> str:
        shape = "none" if self.attention is None else " x ".join(map(str, self.attention.shape))
        text = self.text if len(self.text) <= _MAX_REPR else f"{self.text[:_MAX_REPR]}..."
        return f"Translation({text!r}, log_prob={self.log_prob:.2f}, attention: {shape})"

    def _repr_html_(self) -> str:
        """Return the text and the attention map that a notebook shows."""
        map = self.attention_map()
        return f"<p>{html.escape(self.text)}</p>" + ("" if map is None else map._repr_html_())


def name_unknown(translation: Translation) -> Translation:
    """Return the translation with its unknown tokens as unknown words."""
    tokens = [translation.source_tokens[position] for position in translation.unknown_positions]
    return replace(translation, unknown=tuple(token.removeprefix(SPACE) for token in tokens))


def heaviest_token(source: Sequence[str], weights_S: Weights) -> str:
    """Return the source token with the highest weight, ignoring tokens that end a source."""
    is_text_S = np.array([token != SOURCE_END for token in source])
    return source[int(np.where(is_text_S, weights_S[: len(source)], -1.0).argmax())]
