"""Describe the tokenizers, vocabularies and search options of a run as plain JSON values, which a
program that translates needs besides the graphs of the model."""

import re

from seq2seq_attn.errors import UsageError
from seq2seq_attn.files import JsonObject
from seq2seq_attn.run import Run
from seq2seq_attn.text.known_words import PATTERN
from seq2seq_attn.text.languages import english_name, short_code
from seq2seq_attn.text.normalize import has_dotless_i
from seq2seq_attn.text.scripts import UNSPACED_SENTENCES, usual_script
from seq2seq_attn.text.tokenizers.base import CharacterTokenizer, SpaceTokenizer
from seq2seq_attn.text.tokenizers.sentencepiece import SentencePieceTokenizer
from seq2seq_attn.text.tokenizers.source import Source
from seq2seq_attn.text.tokenizers.spacy import SpacyTokenizer
from seq2seq_attn.text.vocab import BOS, EOS, PAD, UNK, Vocab

_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
_SYMBOLS = re.compile(r"\\U[0-9A-Fa-f]{8}|\\u[0-9A-Fa-f]{4}|\\.|.", re.DOTALL)
"""matches each character or escape of a regular expression"""


def describe_run(run: Run) -> JsonObject:
    """Return the tokenizers and vocabularies of both sides, the ids of special tokens, the search
    options, and facts about the lines and words of the training text.

    Raises:
        UserError: a file of the run is missing or damaged.
        UsageError: a tokenizer cannot be described.
    """
    config = run.config
    data = config.data
    return {
        "source": _describe_side(data.source_name, run.source_vocab, run.source_tokenizer),
        "target": _describe_side(data.target_language, run.target_vocab, run.target_tokenizer),
        "ids": {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK},
        "search": config.search.model_dump(mode="json"),
        "lines": run.line_facts.model_dump(),
        "max_length": data.max_length,
        "spaces_sentences": usual_script(data.target_language) not in UNSPACED_SENTENCES,
        "words": run.words and run.words.as_json() | {"pattern": PATTERN},
    }


def _describe_side(language: str, vocab: Vocab, tokenizer: Source) -> JsonObject:
    """Return the language, the vocabulary and the tokenizer of the source or the target."""
    return {
        "language": language,
        "language_name": english_name(language).capitalize(),
        "tokens": vocab.tokens,
        **describe_tokenizer(tokenizer),
    }


def describe_tokenizer(tokenizer: Source) -> JsonObject:
    """Return the settings of a tokenizer.

    The settings of SentencePiece include the score of each subword. The settings of spaCy include
    the rules of the language.

    Raises:
        UsageError: the tokenizer does not use spaCy's rules, SentencePiece, characters or spaces.
    """
    described = {"tokenizer": tokenizer.name, "lowercase": getattr(tokenizer, "lowercase", False)}
    if isinstance(tokenizer, SentencePieceTokenizer):
        scores = tokenizer.scores()
        # The scores of a BPE model are ranks; those of a unigram model are log-probabilities.
        is_bpe = all(score == int(score) for score in scores.values())
        return described | {"model": "bpe" if is_bpe else "unigram", "subwords": scores}
    if isinstance(tokenizer, SpacyTokenizer):
        if tokenizer.lowercase and has_dotless_i(tokenizer.language):
            described["lowercase"] = short_code(tokenizer.language)
        if not tokenizer.has_rules:
            raise UsageError(
                f"language {tokenizer.language!r}: spaCy tokenizes it with a program, not with "
                "rules"
            )
        rules: JsonObject = {"special": tokenizer.special_cases()}
        for name, pattern in tokenizer.patterns().items():
            rules[name] = _for_javascript(pattern)
        return described | {"language": tokenizer.language, "rules": rules}
    if type(tokenizer) not in (CharacterTokenizer, SpaceTokenizer):
        raise UsageError(
            f"tokenizer {tokenizer.name!r}: a page knows spaCy, SentencePiece, characters and "
            "spaces, but no sentences"
        )
    return described


def _for_javascript(pattern: str | None) -> str | None:
    """Convert a regular expression of Python to JavaScript with the flag `u`.

    With this flag, JavaScript rejects superfluous escapes. Its classes `\\w` and `\\d` hold ASCII
    only, so they are replaced by classes of Unicode properties.
    """
    if pattern is None:
        return None
    written = []
    is_in_class = False
    for symbol in _SYMBOLS.findall(pattern.removeprefix("(?u)")):
        if symbol in ("[", "]"):
            is_in_class = symbol == "["
        if symbol.startswith("\\U"):
            symbol = f"\\u{{{symbol[2:]}}}"
        elif symbol == "\\w":
            symbol = r"\p{L}\p{N}_" if is_in_class else r"[\p{L}\p{N}_]"
        elif symbol == "\\d":
            symbol = r"\p{Nd}"
        elif symbol[0] == "\\":
            is_needed = symbol[1].isalnum() or symbol[1] in _SYNTAX
            if not is_needed and not (is_in_class and symbol == "\\-"):
                symbol = symbol[1]
        written.append(symbol)
    return "".join(written)
