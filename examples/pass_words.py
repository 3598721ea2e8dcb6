"""Words that a model does not know pass through its translation, as in the package
(`seq2seq_attn/translate/unknown.py`), here for one line.

The model translates several versions of a line, in each of which other stand-ins take the place of
the unknown words. Then their translations give way to the unknown words, and the version that keeps
most of them is chosen.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

SPACE = "▁"
LEAST_WEIGHT = 0.2


class Result(NamedTuple):
    """The tokens that a model writes for a text, and their attention weights."""

    tokens: list[str]
    source: list[str]
    """the source tokens, without EOS"""
    log_prob: float
    weights_TS: np.ndarray


class Passing:
    """Translates lines with the words of a run, the entry `words` of `model.json`."""

    def __init__(
        self,
        about: dict[str, Any],
        tokenize: Callable[[str], list[str]],
        translate: Callable[[str], Result],
        detokenize: Callable[[Sequence[str]], str],
    ) -> None:
        self.words = about["words"]
        self.known = set(self.words["known"])
        self.side = about["source"]
        self.vocab = set(self.side["tokens"])
        self.pattern: re.Pattern[str] = re.compile(self.words["pattern"])
        self.tokenize = tokenize
        self.translate_text = translate
        self.detokenize = detokenize

    def translate(self, line: str) -> str:
        """The translation of a line."""
        line = " ".join(line.split())
        words = list(dict.fromkeys(self.pattern.findall(line)))
        spelled: dict[str, str] = {}
        passed = []
        for word in filter(self.is_unknown, words):
            known = self.find_case(word)
            if known is not None and known != word:
                spelled[word] = known
            elif self.passes(word):
                passed.append(word)
        kept = list(passed)
        if "numbers" in self.words["copied"]:
            kept += [word for word in words if kind_of(word) == "number"]
        if set(words) <= set(kept):
            return line
        options = []
        for stand_ins in self.assign(passed, words):
            sources = {word: source for word, (source, _) in stand_ins.items()}
            result = self.translate_text(self.replace(line, spelled | sources))
            options.append(self.put_back(line, stand_ins, result))
        return min(options)[-1]

    def is_unknown(self, word: str) -> bool:
        """Whether the model does not know a word."""
        is_new = (word.lower() if self.side["lowercase"] else word) not in self.known
        if self.side["tokenizer"] not in ("spacy", "spaces") and self.words["copied"]:
            return is_new
        if self.has_unknown_token(word):
            return True
        return (
            is_new
            and self.side["tokenizer"] != "characters"
            and kind_of(word) in ("number", "code")
        )

    def has_unknown_token(self, word: str) -> bool:
        """Whether a word and one of its tokens are outside the vocabulary."""
        return word not in self.vocab and not self.vocab.issuperset(self.tokenize(word))

    def passes(self, word: str) -> bool:
        """Whether an unknown word stays as it is."""
        if self.side["tokenizer"] == "characters":
            return self.is_copied(word) and kind_of(word) != "name"
        return self.has_unknown_token(word) or self.is_copied(word)

    def is_copied(self, word: str) -> bool:
        """Whether the training text leaves such words as they are."""
        if kind_of(word) == "name":
            for size in range(max(4, len(word) // 2), len(word)):
                if self.find_case(word[:size]) or self.find_case(word[-size:]):
                    return False
        return kind_of(word) in self.words["copied"]

    def find_case(self, word: str) -> str | None:
        """The word as the training text writes it."""
        for spelling in (word, word.lower(), word.capitalize()):
            if spelling in self.known:
                return spelling
        return None

    def assign(self, passed: Sequence[str], words: Sequence[str]) -> list[dict[str, Any]]:
        """The stand-ins, (source word, target word), of the words for each version."""
        present = set(map(str.lower, words))
        numbers = [pair for pair in self.words["numbers"] if pair[0].lower() not in present]
        others = [pair for pair in self.words["others"] if pair[0].lower() not in present]
        versions = []
        for _ in range(max(len(numbers), len(others))):
            free_others = list(others)
            free_numbers = list(numbers) or free_others
            stand_ins = {}
            for word in passed:
                free = free_numbers if kind_of(word) == "number" else free_others
                if free:
                    stand_ins[word] = free.pop(0)
            if stand_ins:
                versions.append(stand_ins)
            numbers = numbers[1:] + numbers[:1]
            others = others[1:] + others[:1]
        return versions or [{}]

    def put_back(
        self, line: str, stand_ins: dict[str, Any], result: Result
    ) -> tuple[int, int, float, str]:
        """The number of lost words, the number of stand-ins to which another token than their
        target word attends most, the negative log-probability, and the text with the unknown words
        in place of their stand-ins."""
        targets = {target.lower(): word for word, (_, target) in stand_ins.items()}
        tokens = list(result.tokens)
        text = self.detokenize(tokens)
        written = self.pattern.findall(text.lower())
        lost = [pair for pair in stand_ins.values() if pair[1].lower() not in written]
        weights_TS = result.weights_TS[: len(tokens), : len(result.source)].copy()
        num_doubtful = 0
        for source, target in stand_ins.values():
            weights_T = weights_of(source, result, weights_TS)
            if tokens and spelling(tokens[int(weights_T.argmax())]) != target.lower():
                num_doubtful += 1
        for position, token in enumerate(tokens):
            if spelling(token) in targets:
                weights_TS[position] = 0.0
        for source, target in lost:
            weights_T = weights_of(source, result, weights_TS)
            for row in (-weights_T).argsort(kind="stable"):
                if weights_T[row] < LEAST_WEIGHT:
                    break
                mark = SPACE if tokens[row].startswith(SPACE) else ""
                replaced = [*tokens[:row], mark + target, *tokens[row + 1 :]]
                # The target word must not become part of a longer word.
                if target in self.pattern.findall(self.detokenize(replaced)):
                    weights_TS[row] = 0.0
                    tokens = replaced
                    text = self.detokenize(tokens)
                    break
        text = self.pattern.sub(lambda match: targets.get(match[0].lower(), match[0]), text)
        counts = self.pattern.findall(line), self.pattern.findall(text)
        num_lost = len(lost)
        for word in stand_ins:
            num_lost += counts[0].count(word) != counts[1].count(word)
        return num_lost, num_doubtful, -result.log_prob, text

    def replace(self, line: str, words: dict[str, str]) -> str:
        """The line with other words in place of some."""
        return self.pattern.sub(lambda match: words.get(match[0], match[0]), line)


def weights_of(source: str, result: Result, weights_TS: np.ndarray) -> np.ndarray:
    """The attention of each target token to the source tokens that spell a stand-in."""
    is_source = [spelling(token) == source.lower() for token in result.source]
    weights_T: np.ndarray = weights_TS[:, is_source].sum(axis=1)
    return weights_T


def spelling(token: str) -> str:
    """A token without its mark of a space, in lower case."""
    return token.removeprefix(SPACE).lower()


def kind_of(word: str) -> str:
    """`number`, `code`, `name` or `word`."""
    if re.fullmatch(r"[\W\d_]*\d[\W\d_]*", word):
        return "number"
    if re.search(r"\d|[%{@_/\\&+~#]|\w[.:]\w|.\B[A-Z]", word):
        return "code"
    return "name" if word[0].isupper() else "word"
