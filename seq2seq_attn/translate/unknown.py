"""Pass words that the model does not know through a translation.

The model translates several versions of a line. In each version, different stand-ins take the place
of the unknown words (`text/known_words.py`). In a translation, the unknown word replaces the target
word of the stand-in. If the translation lacks this target word, the unknown word replaces the token
that attends most to the stand-in. Of the versions, the one that loses fewest words is chosen; then
the one with fewest stand-ins to which another token than the target word attends most; then the
most probable one. Four versions are translated, and more only if each of the four loses a word.

A line of unknown words alone is returned as it is, and so is a line of numbers if no line of the
training text is one. A word that is known in another case only is
spelled as in the training text, and a warning says so: `US` may not be `us`.

Shapes: T target positions, S source positions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.run import Run
from seq2seq_attn.text.known_words import KnownWords, StandIn, kind_of, replace_words, words_in
from seq2seq_attn.text.marks import SPACE
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.sentences import split_line
from seq2seq_attn.text.tokenizers.base import Tokenizer
from seq2seq_attn.text.vocab import UNK, Vocab
from seq2seq_attn.translate.numbers import find_numbers
from seq2seq_attn.translate.segments import SplitLines, empty_translation
from seq2seq_attn.translate.translation import EOS_TOKEN, Translation
from seq2seq_attn.translate.unknown_line import Line, Version, codes_in, mark_unknown

_LEAST_WEIGHT = 0.2
"""minimum attention to a stand-in of a token that is not the target word of the stand-in, but is
replaced by the unknown word"""
_AT_ONCE = 4
"""number of versions of a line that are translated at once; the rest only if all of them lose a
word"""
_MIN_LINES = 5
_NUM_CHECKED = 200
"""The languages are exchanged if more than a quarter of the first 200 distinct words, in five lines
or more, are target tokens and unknown. In captions by two runs, it is at most 6 % of the words of
the source language, 16 % of a third language, and 30 to 98 % of the target language."""

TranslateTexts = Callable[[SplitLines, bool], list[list[Translation]]]
"""translates lines; the second argument says whether translations keep their attention"""
Option = tuple[int, int, float, list[Translation]]
"""numbers of lost and of doubtful stand-ins of a version, the negative log-probability, and the
translations"""


class UnknownWords(NamedTuple):
    """Finds the unknown words of lines, and passes them through translations."""

    words: KnownWords
    source: Tokenizer
    vocab: Vocab
    """the vocabulary of the source"""
    target: Tokenizer
    target_words: frozenset[str]
    """the target tokens without marks of spaces"""

    def read(
        self,
        line: str,
        is_unknown: dict[str, bool],
        into_sentences: bool = False,
        known_words: Container[str] = (),
    ) -> Line:
        """Find the unknown words of a line, and make the versions of the line that are translated.

        Args:
            line: the line.
            is_unknown: remembers whether each word is unknown; new words are added.
            into_sentences: whether to split the line into sentences.
            known_words: words that count as known.
        """
        sentences = _normalize_sentences(split_line(line, into_sentences))
        text = "".join(sentences)
        words = list(dict.fromkeys(words_in(text)))
        unknown = []
        passed = []
        notes = []
        spelled: dict[str, str] = {}
        for word in words:
            if word not in is_unknown:
                is_unknown[word] = self._is_unknown(word)
            if not is_unknown[word] or word in known_words:
                continue
            spelling = self.words.find_spelling(word)
            if spelling and spelling != word and not self._has_unknown_token(spelling):
                spelled[word] = spelling
                notes.append(f"{word} is read as {spelling}.")
                continue
            unknown.append(word)
            if self._passes(word):
                passed.append(word)
        unchanged = set(passed)
        if "numbers" in self.words.copied:
            for word in words:
                if kind_of(word) == "number" and word not in known_words:
                    unchanged.add(word)
        if text and unchanged.issuperset(words):  # no word is left to translate
            return Line(normalize(line), unknown, passed, [], notes)
        versions = []
        for stand_ins in self._assign(passed, words):
            new_words = spelled | {word: pair.source for word, pair in stand_ins.items()}
            replaced = map(partial(replace_words, find=new_words.get), sentences)
            versions.append(Version(list(replaced), stand_ins))
        numbers = self._numbers_to_keep(text, words, passed, known_words)
        return Line(text, unknown, passed, versions, notes, numbers)

    def _numbers_to_keep(
        self, text: str, words: Sequence[str], passed: Sequence[str], known_words: Container[str]
    ) -> list[str]:
        """Return the numbers of a line of natural text, without those in `known_words` and in codes
        that pass. Numbers alone, and text that is split at spaces or into characters, may be
        notation, whose numbers change."""
        if not any(map(str.isdecimal, text)):
            return []
        is_text = {self.source.name, self.target.name} <= {"spacy", "sentencepiece"}
        has_words = set(map(kind_of, words)) != {"number"}
        if not (is_text and has_words and "number" in self.words.copied):
            return []
        ignored = filter(known_words.__contains__, words)
        return find_numbers(text, [*ignored, *codes_in(passed)])

    def _is_unknown(self, word: str) -> bool:
        """Return whether a word is unknown.

        If tokens are subwords or characters, and the run copies words, a word is unknown if it is
        not in `words.known`. Otherwise it is unknown if one of its tokens is not in the vocabulary
        or, unless tokens are characters, if it is a number or code that is not in `words.known`.
        """
        spelled = word.lower() if self.source.lowercase else word
        is_new = spelled not in self.words.known
        if self.source.name not in ("spacy", "spaces") and self.words.copied:
            return is_new
        if self._has_unknown_token(word):
            return True
        return is_new and self.source.name != "characters" and kind_of(word) in ("number", "code")

    def _has_unknown_token(self, word: str) -> bool:
        return word not in self.vocab and UNK in self.vocab.ids_of(self.source.tokenize(word))

    def _passes(self, word: str) -> bool:
        """Return whether an unknown word is to stay as it is. The model translates the other
        words, because it knows their subwords or characters."""
        if self.source.name == "characters":
            return self.words.is_copied(word) and kind_of(word) != "name"
        return self._has_unknown_token(word) or self.words.is_copied(word)

    def _assign(self, passed: Sequence[str], words: Sequence[str]) -> list[dict[str, StandIn]]:
        """Return the stand-in of each word in `passed` for each version of a line.

        Each version begins with a different stand-in. No stand-in is among `words`, the words of
        the line, whatever its capitals, because its target word may translate that word. If there
        are fewer stand-ins than words, the last words have no stand-in. A line without stand-ins
        has one version.
        """
        present = set(map(str.lower, words))
        numbers = deque(pair for pair in self.words.numbers if pair.source.lower() not in present)
        others = deque(pair for pair in self.words.others if pair.source.lower() not in present)
        assigned = []
        for _ in range(max(len(numbers), len(others))):
            free_others = list(others)
            free_numbers = list(numbers) or free_others
            stand_ins = {}
            for word in passed:
                free = free_numbers if kind_of(word) == "number" else free_others
                if free:
                    stand_ins[word] = free.pop(0)
            if stand_ins:
                assigned.append(stand_ins)
            numbers.rotate(-1)
            others.rotate(-1)
        return assigned or [{}]

    def translate(
        self,
        lines: Sequence[str],
        translate: TranslateTexts,
        *,
        keep_attention: bool,
        into_sentences: bool = False,
        known_words: Callable[[str], Container[str]] | None = None,
        warn: Callable[[str], None],
    ) -> list[list[Translation]]:
        """Return the translations of each line, best first, with the unknown words in them.
        `known_words` returns the words of a line that count as known, and `warn` logs a warning
        about all lines."""
        # Words are not kept after the call, because a server remembers no words of its clients.
        is_unknown: dict[str, bool] = {}
        read_lines = []
        for text in lines:
            known = known_words(text) if known_words else ()
            read_lines.append(self.read(text, is_unknown, into_sentences, known))
        first_words = list(is_unknown)[:_NUM_CHECKED]
        num_target = sum(is_unknown[word] and word in self.target_words for word in first_words)
        if len(lines) >= _MIN_LINES and 4 * num_target > len(first_words):
            warn("many words are words of the target language: are the languages exchanged?")
        plain = []
        for line in read_lines:
            if line.versions and not line.versions[0].stand_ins:
                plain.append(line.versions[0].sentences)
        plain_results = iter(translate(plain, keep_attention))
        restored = self._restore(read_lines, translate)
        results = []
        for line, options in zip(read_lines, restored, strict=True):
            if options:
                *_, translations = min(options, key=lambda option: option[:3])
            elif line.versions:
                translations = next(plain_results)
            else:
                translations = [self._unchanged(line.text)]
            results.append([mark_unknown(line, item, keep_attention) for item in translations])
        return results

    def _unchanged(self, text: str) -> Translation:
        """Return a translation that is equal to the text, with attention from each token to
        itself."""
        tokens = self.source.tokenize(text)
        return replace(
            empty_translation(has_attention=True),
            text=text,
            tokens=tokens,
            source_tokens=[*tokens, EOS_TOKEN],
            attention=np.eye(len(tokens) + 1, dtype=np.float32),
            heaviest=list(range(len(tokens))),
        )

    def _restore(self, lines: Sequence[Line], translate: TranslateTexts) -> list[list[Option]]:
        """Return the translations of versions with stand-ins, for each line, with the unknown words
        in place of the stand-ins."""
        options: list[list[Option]] = [[] for _ in lines]
        for first in (0, _AT_ONCE):
            asked = []
            for line, tried in zip(lines, options, strict=True):
                if all(num_lost for num_lost, *_ in tried):
                    for version in line.versions[first : first + _AT_ONCE]:
                        if version.stand_ins:
                            asked.append((line, version, tried))
            # The best version is chosen by the attention to the stand-ins.
            results = translate([version.sentences for _, version, _ in asked], True)
            for (line, version, tried), translations in zip(asked, results, strict=True):
                tried.append(self._rate(line, version, translations))
        return options

    def _rate(self, line: Line, version: Version, translations: Sequence[Translation]) -> Option:
        """Return the translations of a version with the unknown words in place of the stand-ins,
        after three numbers that are low for a good version."""
        words = words_in(line.text)
        restored = [self._put_back(version, translation) for translation in translations]
        num_lost = len(_find_lost(version, translations[0].text))
        written = words_in(restored[0].text)
        for word in version.stand_ins:
            if written.count(word) != words.count(word):
                num_lost += 1
        num_doubtful = _count_doubtful(version, translations[0])
        return num_lost, num_doubtful, -restored[0].log_prob, restored

    def _put_back(self, version: Version, translation: Translation) -> Translation:
        """Return the translation with the unknown words in place of their stand-ins."""
        sources = {}
        targets = {}
        for word, pair in version.stand_ins.items():
            sources[pair.source.lower()] = word
            targets[pair.target.lower()] = word
        text = translation.text
        tokens = self._recover(translation, _find_lost(version, text), targets)
        if tokens != translation.tokens:
            text = self.target.detokenize(tokens)
        text = replace_words(text, lambda word: targets.get(word.lower()))
        warnings = list(translation.warnings)
        for word in words_in(text):
            if word.lower().startswith(tuple(targets)) and word not in version.stand_ins:
                warnings.append(f"{word} may stand for an unknown word.")
        return replace(
            translation,
            text=text,
            tokens=_respell(tokens, targets),
            source_tokens=_respell(translation.source_tokens, sources),
            warnings=tuple(warnings),
        )

    def _recover(
        self, translation: Translation, lost: Sequence[StandIn], targets: Container[str]
    ) -> list[str]:
        """Return the tokens of a translation with the target word of each lost stand-in put back.
        It replaces the token that attends most to the stand-in, if the attention is at least
        `_LEAST_WEIGHT`, or the next one where the target word would be part of a longer word.
        Tokens in `targets` are never replaced."""
        tokens = list(translation.tokens)
        if translation.attention is None:
            return tokens
        weights_TS = translation.attention[: len(tokens)].copy()
        for position, token in enumerate(tokens):
            if _spelling(token) in targets:
                weights_TS[position] = 0.0
        for pair in lost:
            weights_T = _sum_weights(translation, weights_TS, pair)
            for row in (-weights_T).argsort(kind="stable"):
                if weights_T[row] < _LEAST_WEIGHT:
                    break
                replaced = [*tokens]
                replaced[row] = _with_mark(tokens[row], pair.target)
                if pair.target in words_in(self.target.detokenize(replaced)):
                    weights_TS[row] = 0.0  # not to be replaced again
                    tokens = replaced
                    break
        return tokens


def _normalize_sentences(sentences: Sequence[str]) -> list[str]:
    """Return the normalized sentences of a line, with a space after each but the last, so that
    their words are apart."""
    *first, last = map(normalize, sentences)
    return [*(f"{sentence} " for sentence in first), last]


def unknown_words(text: Run | PreparedCorpus) -> UnknownWords | None:
    """Return the `UnknownWords` of a run. Return None in training, and for a run that has no file
    of words or whose source is not one text."""
    if not (isinstance(text, Run) and text.words and isinstance(text.source_tokenizer, Tokenizer)):
        return None
    target_words = frozenset(token.removeprefix(SPACE) for token in text.target_vocab.tokens)
    source = text.source_tokenizer
    return UnknownWords(text.words, source, text.source_vocab, text.target_tokenizer, target_words)


def _find_lost(version: Version, text: str) -> list[StandIn]:
    """Return the stand-ins whose target words a translation lacks."""
    written = words_in(text.lower())
    return [pair for pair in version.stand_ins.values() if pair.target.lower() not in written]


def _count_doubtful(version: Version, translation: Translation) -> int:
    """Return the number of stand-ins to which a token other than the target word attends most.
    The model has then written the target word as part of a frequent phrase, in which an unknown
    word would be out of place."""
    if translation.attention is None or not translation.tokens:
        return 0
    num_doubtful = 0
    for pair in version.stand_ins.values():
        weights_T = _sum_weights(translation, translation.attention, pair)
        token = translation.tokens[int(weights_T.argmax())]
        if _spelling(token) != pair.target.lower():
            num_doubtful += 1
    return num_doubtful


def _sum_weights(
    translation: Translation, weights_TS: npt.NDArray[np.float32], pair: StandIn
) -> npt.NDArray[np.float32]:
    """Return the attention of each target token to the source tokens that spell a stand-in."""
    spellings = np.array(list(map(_spelling, translation.source_tokens)))
    is_stand_in_S = spellings == pair.source.lower()
    weights_T: npt.NDArray[np.float32] = weights_TS[:, is_stand_in_S].sum(axis=1)
    return weights_T[: len(translation.tokens)]


def _respell(tokens: Sequence[str], words: Mapping[str, str]) -> list[str]:
    """Return the tokens with words in place of the tokens that spell a key of `words`."""
    respelled = []
    for token in tokens:
        word = words.get(_spelling(token))
        respelled.append(token if word is None else _with_mark(token, word))
    return respelled


def _spelling(token: str) -> str:
    return token.removeprefix(SPACE).lower()


def _with_mark(token: str, word: str) -> str:
    """Return the word, with a mark of a space if the token has one."""
    return SPACE + word if token.startswith(SPACE) else word
