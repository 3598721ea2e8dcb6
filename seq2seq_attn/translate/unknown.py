"""Pass words that the model does not know through a translation.

The model translates several versions of a line, in each of which other stand-ins take the place of
the unknown words (`text/known_words.py`). In a translation, the target word of a stand-in gives way
to the unknown word; without it, the target word that attends most to the stand-in does. The version
that keeps most stand-ins is chosen, then the most probable one.

A line of unknown words alone is returned as it is. A word of which only the case is unknown is
spelled as in the training text.

Shapes: T target positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.run import Run
from seq2seq_attn.text.known_words import KnownWords, StandIn, kind_of, replace_words, words_in
from seq2seq_attn.text.marks import SPACE
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.vocab import UNK, Vocab
from seq2seq_attn.translate.translation import EOS_TOKEN, Translation

_LEAST_WEIGHT = 0.2
"""minimum attention of a target word that gives way to an unknown word without its stand-in"""

TranslateTexts = Callable[[Sequence[str]], list[list[Translation]]]


class Version(NamedTuple):
    """A line as the model reads it."""

    text: str
    stand_ins: Mapping[str, StandIn]
    """the stand-in of each unknown word"""


class UnknownWords(NamedTuple):
    """Finds the unknown words of lines, and passes them through translations."""

    words: KnownWords
    source: Tokenizer
    vocab: Vocab
    """the vocabulary of the source"""
    target: Tokenizer
    is_unknown: dict[str, bool]
    """the words that were looked up, until they are cleared"""

    def find(self, line: str) -> list[str]:
        """Return the distinct unknown words of a line, in order."""
        words = list(dict.fromkeys(words_in(line)))
        for word in words:
            if word not in self.is_unknown:
                self.is_unknown[word] = self._look_up(word)
        return [word for word in words if self.is_unknown[word]]

    def _look_up(self, word: str) -> bool:
        spelled = word.lower() if self.source.lowercase else word
        is_new = spelled not in self.words.known
        if self.source.name not in ("spacy", "spaces"):
            return is_new
        return self._has_unknown_token(word) or (is_new and kind_of(word) in ("number", "code"))

    def _has_unknown_token(self, word: str) -> bool:
        return word not in self.vocab and UNK in self.vocab.ids_of(self.source.tokenize(word))

    def _passes(self, word: str) -> bool:
        """Return whether an unknown word is to stay as it is. The model translates the other
        words, because it knows their subwords or characters."""
        if self.source.name == "characters":
            return self.words.is_copied(word) and kind_of(word) != "name"
        return self._has_unknown_token(word) or self.words.is_copied(word)

    def versions(self, line: str) -> list[Version]:
        """Return what the model reads in place of a line: nothing if the line stays as it is."""
        words = set(words_in(line))
        spelled: dict[str, str] = {}
        passed = []
        for word in self.find(line):
            known = self.words.find_case(word)
            if known is not None and known != word:
                spelled[word] = known
            elif self._passes(word):
                passed.append(word)
        if line and words.issubset(passed):
            return []
        numbers = [pair for pair in self.words.numbers if pair.source not in words]
        others = [pair for pair in self.words.others if pair.source not in words]
        versions = []
        for first in range(max(len(numbers), len(others)) if passed else 0):
            chosen = _assign(passed, numbers or others, others, first)
            sources = {word: pair.source for word, pair in chosen.items()}
            versions.append(Version(replace_words(line, {**spelled, **sources}), chosen))
        return versions or [Version(replace_words(line, spelled), {})]

    def translate(
        self,
        lines: Sequence[str],
        translate: TranslateTexts,
        translate_with_attention: TranslateTexts,
        keep_attention: bool,
    ) -> list[list[Translation]]:
        """Return the translations of each line, best first."""
        lines = list(map(normalize, lines))
        versions = list(map(self.versions, lines))
        plain: list[str] = []
        changed: list[str] = []
        for options in versions:
            for option in options:
                (changed if option.stand_ins else plain).append(option.text)
        plain_results = iter(translate(plain))
        changed_results = iter(translate_with_attention(changed))
        results = []
        for line, options in zip(lines, versions, strict=True):
            if not options:
                translations = [self._unchanged(line)]
            elif options[0].stand_ins:
                translations = self._choose(line, options, changed_results)
            else:
                translations = next(plain_results)
            if self.find(line):
                translations = self._mark(line, translations, keep_attention)
            results.append(translations)
        self.is_unknown.clear()  # a server keeps no words of its clients
        return results

    def _unchanged(self, line: str) -> Translation:
        tokens = self.source.tokenize(line)
        return Translation(
            text=line,
            tokens=tokens,
            score=0.0,
            log_prob=0.0,
            source_tokens=[*tokens, EOS_TOKEN],
            attention=np.eye(len(tokens) + 1, dtype=np.float32),
            is_finished=True,
            heaviest=list(range(len(tokens))),
        )

    def _choose(
        self, line: str, versions: Sequence[Version], results: Iterator[list[Translation]]
    ) -> list[Translation]:
        """Return the translations of the best version, with the unknown words in them."""
        best: list[Translation] = []
        best_rank = (len(line), 0.0)
        for version in versions:
            restored = [self._put_back(version, translation) for translation in next(results)]
            num_lost, first = restored[0]
            for word in version.stand_ins:
                num_lost += words_in(first.text).count(word) != words_in(line).count(word)
            rank = (num_lost, -first.log_prob)
            if not best or rank < best_rank:
                best_rank = rank
                best = [translation for _, translation in restored]
        return best

    def _put_back(self, version: Version, translation: Translation) -> tuple[int, Translation]:
        """Return the number of stand-ins that the translation lacks, and the translation with the
        unknown words."""
        source = list(translation.source_tokens)
        tokens = list(translation.tokens)
        written: dict[str, str] = {}
        lost = {}
        known = words_in(translation.text.lower())
        for word, pair in version.stand_ins.items():
            columns = _put(source, word, pair.source)
            _put(tokens, word, pair.target)
            written |= {pair.target: word, pair.target.lower(): word}
            written[pair.target.capitalize()] = word
            if pair.target.lower() not in known:
                lost[word] = columns
        text = replace_words(translation.text, written)
        if translation.attention is not None and any(lost.values()):
            weights_TS = translation.attention[: len(tokens)].copy()
            for position, token in enumerate(tokens):
                if token.removeprefix(SPACE) in version.stand_ins:
                    weights_TS[position] = 0.0
            for word, columns in lost.items():
                weights_T = weights_TS[:, columns].sum(axis=1)
                if weights_T.max(initial=0.0) >= _LEAST_WEIGHT:
                    row = int(weights_T.argmax())
                    weights_TS[row] = 0.0
                    tokens[row] = _respell(tokens[row], word)
            text = self.target.detokenize(tokens)
        return len(lost), replace(translation, text=text, tokens=tokens, source_tokens=source)

    def _mark(
        self, line: str, translations: Sequence[Translation], keep_attention: bool
    ) -> list[Translation]:
        """Return the translations with the unknown words of the line."""
        unknown = tuple(self.find(line))
        marked = []
        for translation in translations:
            positions = set(translation.unknown_positions)
            for position, token in enumerate(translation.source_tokens):
                if token.removeprefix(SPACE) in unknown:
                    positions.add(position)
            warnings = list(translation.warnings)
            written = words_in(translation.text)
            lost = [word for word in unknown if word not in written]
            for word in lost:
                if self._passes(word) and self.words.find_case(word) is None:
                    warnings.append(
                        f"{word} is unknown to the model and missing in the translation."
                    )
            marked.append(
                replace(
                    translation,
                    unknown=unknown,
                    unknown_positions=tuple(sorted(positions)),
                    warnings=tuple(warnings),
                    attention=translation.attention if keep_attention else None,
                )
            )
        return marked


def unknown_words(text: Run | PreparedCorpus) -> UnknownWords | None:
    """Return the object for the words of a run. It is None in training, and where the source is not
    one text."""
    if not (isinstance(text, Run) and text.words and isinstance(text.source_tokenizer, Tokenizer)):
        return None
    return UnknownWords(
        text.words, text.source_tokenizer, text.source_vocab, text.target_tokenizer, {}
    )


def _assign(
    words: Sequence[str], numbers: Sequence[StandIn], others: Sequence[StandIn], first: int
) -> dict[str, StandIn]:
    """Return a stand-in for each word, beginning at index `first`. Words for which none is left
    have none."""
    chosen: dict[str, StandIn] = {}
    for word in words:
        pairs = numbers if kind_of(word) == "number" else others
        start = first % max(1, len(pairs))
        for pair in [*pairs[start:], *pairs[:start]]:
            if word not in chosen and pair not in chosen.values():
                chosen[word] = pair
    return chosen


def _put(tokens: list[str], word: str, old: str) -> list[int]:
    """Replace the tokens that spell the word `old`, in any case, and return their positions."""
    positions = []
    for position, token in enumerate(tokens):
        if token.removeprefix(SPACE).lower() == old.lower():
            tokens[position] = _respell(token, word)
            positions.append(position)
    return positions


def _respell(token: str, word: str) -> str:
    return SPACE + word if token.startswith(SPACE) else word
