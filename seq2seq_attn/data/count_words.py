"""Count the words of the training text, and find stand-ins for unknown words.

A stand-in is a source word that the text always translates by the same target word. In translation,
it takes the place of an unknown word (`text/known_words.py`). The words of a stand-in occur in the
same sentence pairs, so that their Dice coefficient is high:

    Dice(s, t) = 2 n(s, t) / (n(s) + n(t))

n is the number of sentence pairs in which the words occur, of the first `NUM_PAIRS` of the text.

Memory does not grow with the text, because the rarest words are dropped whenever there are too many
words.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice, product
from pathlib import Path

from seq2seq_attn.data.store import iter_exact
from seq2seq_attn.text.known_words import KINDS, KnownWords, StandIn, kind_of, words_in
from seq2seq_attn.text.normalize import normalize
from seq2seq_attn.text.tokenizers.words import like_number

MAX_WORDS = 200_000
"""maximum number of words that are kept, the most frequent ones"""
NUM_PAIRS = 20_000
"""number of sentence pairs that stand-ins are looked for in"""
_BLOCK = 10_000
"""number of lines that are counted at once"""
_NUM_CANDIDATES = 1_000
"""number of frequent words that are candidates for a pair"""
_LEAST_DICE = 0.85
"""minimum Dice coefficient of a pair"""
_LEAST_PAIRS = 3
"""minimum number of sentence pairs in which a pair occurs"""
_MAX_SHARE = 0.05
"""Words in a larger share of the sentences, such as `and`, are the last choice."""
_TOO_FREQUENT = 0.3
"""Words in a larger share of the sentences occur together by chance."""
_NUM_STAND_INS = 4
"""maximum number of stand-ins for numbers, and of names that stay the same. Names and other words
together are at most twice as many."""
_NUM_COMMON = 200
"""Names among this number of the most frequent pairs are stand-ins, as models know them well."""
_FREQUENT = 5
"""A number that occurs less often counts as unknown, because models learn rare numbers badly."""
_EVIDENCE = 20
"""number of words of a kind that show whether texts leave words of this kind as they are"""
_LEAST_COPIED = 0.003
"""minimum share of the words of a kind that are in the target too, if texts leave them as they are.
The share of words with a first capital is 0.8 % in German captions, where most are nouns. The share
of words in capitals is 0.005 % in a dictionary, where some sounds are spelled like words."""
_MANY_WORDS = 1.5
"""Lines of a text with more words on average are sentences."""

Sentences = Sequence[set[str]]


def count_words(
    files: Sequence[Path], languages: Sequence[str], *, lowercase: bool = False
) -> KnownWords:
    """Return the known words of a text, its stand-ins, and the kinds of words that it copies.

    Args:
        files: the file of source lines and the file of target lines.
        languages: the languages of both files.
        lowercase: whether the tokenizer reads words in lower case.
    """
    sources, targets = (_first_sentences(path, lowercase) for path in files)
    known = set()
    for word, count in _count_all(files[0], lowercase).most_common(MAX_WORDS):
        if count >= _FREQUENT or kind_of(word) != "number":
            known.add(word)
    numbers = []
    names = []
    frequent = []
    # A word that stays the same but is no name, such as `tennis`, is often part of a phrase. Words
    # that occur more often fit in more places.
    for rank, pair in enumerate(find_pairs(sources, targets)):
        is_common_name = rank < _NUM_COMMON and kind_of(pair.source) != "word"
        # spaCy knows the words for numbers in some languages only.
        if any(map(like_number, languages, pair)):
            numbers.append(pair)
        elif pair.source == pair.target and is_common_name:
            names.append(pair)
        else:
            frequent.append(pair)
    return KnownWords(
        frozenset(known),
        numbers[:_NUM_STAND_INS],
        [*names[:_NUM_STAND_INS], *frequent][: 2 * _NUM_STAND_INS],
        find_copied(sources, targets),
    )


def _first_sentences(path: Path, lowercase: bool) -> Sentences:
    """Return the words of each of the first `NUM_PAIRS` lines."""
    lines = islice(iter_exact(path), NUM_PAIRS)
    return [set(words_in(normalize(line, lowercase=lowercase))) for line in lines]


def _count_all(path: Path, lowercase: bool) -> Counter[str]:
    """Return how often each word occurs in a file.

    No word contains a space. Therefore the pieces between spaces are counted first, and each
    distinct piece is normalized and divided into words once.
    """
    pieces = Counter[str]()
    lines = iter_exact(path)
    while block := list(islice(lines, _BLOCK)):
        pieces.update(chain.from_iterable(map(str.split, block)))
        if len(pieces) > 4 * MAX_WORDS:
            pieces = Counter(dict(pieces.most_common(2 * MAX_WORDS)))
    counts = Counter[str]()
    for piece, count in pieces.items():
        for word in words_in(normalize(piece, lowercase=lowercase)):
            counts[word] += count
    return counts


def find_pairs(sources: Sentences, targets: Sentences) -> list[StandIn]:
    """Return pairs of words that translate each other. Each word is in one pair only.

    The most frequent pairs come first. Pairs in a larger share of the sentence pairs than
    `_MAX_SHARE` come after all other pairs, because words such as `and` make bad stand-ins.

    Args:
        sources: the source words of each sentence pair.
        targets: the target words of each sentence pair.
    """
    source_counts = _count(sources, targets)
    target_counts = _count(targets, sources)
    both = Counter[tuple[str, str]]()
    for source, target in zip(sources, targets, strict=True):
        both.update(product(source & source_counts.keys(), target & target_counts.keys()))
    ranks = {}
    for (source_word, target_word), count in both.items():
        total = source_counts[source_word] + target_counts[target_word]
        if count >= _LEAST_PAIRS and 2 * count >= _LEAST_DICE * total:
            is_last_choice = count > _MAX_SHARE * len(sources)
            ranks[StandIn(source_word, target_word)] = (is_last_choice, -count)
    by_rank = sorted(ranks, key=lambda pair: (ranks[pair], pair))
    # The words of a phrase, such as New York, form pairs with each other. Each word is taken once,
    # in a pair of equal words if there is one: those pairs come first here, by rank.
    equal_first = sorted(by_rank, key=lambda pair: pair.source != pair.target)
    taken = set()
    taken_sources = set()
    taken_targets = set()
    for pair in equal_first:
        if pair.source not in taken_sources and pair.target not in taken_targets:
            taken.add(pair)
            taken_sources.add(pair.source)
            taken_targets.add(pair.target)
    return [pair for pair in by_rank if pair in taken]


def _count(sentences: Sentences, others: Sentences) -> dict[str, int]:
    """Return the number of sentences that each candidate for a pair occurs in. Candidates are the
    most frequent words, and the most frequent words that occur on the other side too. Words in too
    many sentences are left out."""
    counts = Counter(chain.from_iterable(sentences))
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    shared = set(chain.from_iterable(others))
    same = [word for word in ordered if word in shared]
    candidates = [*ordered[:_NUM_CANDIDATES], *same[:_NUM_CANDIDATES]]
    limit = _TOO_FREQUENT * len(sentences)
    return {word: counts[word] for word in candidates if counts[word] <= limit}


def find_copied(sources: Sentences, targets: Sentences) -> list[str]:
    """Return the kinds of words that the targets of a text copy from the sources.

    A kind is copied if enough source words of this kind are in the target of the same sentence
    pair. A kind with fewer than `_EVIDENCE` distinct words counts as copied if the lines are
    sentences, but not in a list of words such as a pronunciation dictionary. If numbers are copied
    and no source sentence consists of numbers alone, `numbers` is added.
    """
    num_types = Counter(map(kind_of, set(chain.from_iterable(sources))))
    num_words = Counter(map(kind_of, chain.from_iterable(sources)))
    copied_words = chain.from_iterable(map(set.intersection, sources, targets))
    num_copied = Counter(map(kind_of, copied_words))
    has_sentences = num_words.total() > _MANY_WORDS * len(sources)
    copied = []
    for kind in KINDS:
        if num_types[kind] < _EVIDENCE:
            is_copied = has_sentences
        else:
            is_copied = num_copied[kind] >= _LEAST_COPIED * num_words[kind]
        if is_copied:
            copied.append(kind)
    if "number" in copied and all(set(map(kind_of, words)) != {"number"} for words in sources):
        copied.append("numbers")
    return copied
