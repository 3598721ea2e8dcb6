"""The page of `scripts/typos`: tables from its record, and two pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.laboratory.harness.pages import provenance, table, with_settings
from scripts.laboratory.harness.records import RECORDS, ROOT, Record
from scripts.tools.typos_corpus import VOWELS
from seq2seq_attn.translate.attention_map import AttentionMap
from seq2seq_attn.translate.figure import new_figure, save_figure
from seq2seq_attn.translate.heat_maps import plot_attention

LONG = 5
"""letters of the word from which on the headline counts: in shorter words the typo is often ambiguous"""
LONG_WORDS = f"{LONG} letters and more"
"""the group of words that the goals are about"""
RECORD = RECORDS / "typos.json"
PAGE, PLOTS = ROOT / "docs" / "typos.md", ROOT / "docs" / "plots"
MAPS, LETTERS = "typos-attention.png", "typos-letters.png"
COLUMNS = (
    ("found", "finder right"),
    ("first", "finder, first letter"),
    ("corrected", "corrector right"),
    ("possible", "corrector, any fitting word"),
    ("attended", "attention on the typo"),
)
GOALS = (("found", 90), ("corrected", 95), ("attended", 80))
COLORS = {"vowel": "#d55e00", "consonant": "#0a3c7a"}
TITLES = {"words": "words", "length": "letters of the word", "kind": "kind of typo", "letter": "corrected letter"}


def draw_plots(folder: Path, record: Record, maps: Sequence[AttentionMap]) -> None:
    """The pictures of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    titles = [f"{''.join(one.source_tokens[:-1])} -> {''.join(one.target_tokens[:-1])}" for one in maps]
    plot_attention(folder / MAPS, maps, titles)
    plot_letters(folder / LETTERS, record["letters"])


INTRODUCTION = """# Misspelled words: a finder and a corrector

An example with characters instead of words, through the same commands as translation: one model finds the typo in a
misspelled word, another corrects it, and the tables show where attention looks.

```bash
scripts/typos --corpus --dir runs/typos     # the text: SPLIT.typo, SPLIT.word, SPLIT.position
text=runs/typos
seq2seq train -c typos/finder --train $text/train --valid $text/valid --test $text/known --run-dir runs/finder
seq2seq train -c typos/corrector --train $text/train-twice --valid $text/valid --test $text/known \\
  --run-dir runs/corrector
seq2seq translate --run runs/corrector childern
seq2seq evaluate runs/corrector --metric exact --metric cer --length-in characters
scripts/typos --record && scripts/results render   # everything below, from scratch
```

The *finder* reads a misspelled word and names the letter where the typo is. Its output is `pointer`: the attention
weights of one decoder step are the answer. The *corrector* writes the right word, letter by letter. Both have an
encoder of three LSTM layers; the corrector's decoder has three, too.

The corpus is made from {words:,} words, {source}, with five kinds of typos: a letter replaced by its neighbor on the
keyboard (*keyboard*), two letters exchanged (*swap*), one left out (*drop*), one written twice (*double*), a vowel
replaced by another (*vowel*). It has {train:,} training pairs, at most {per_kind} per word and kind. The test set
`known` ({known:,} pairs) has other typos of training words; `new` ({new:,} pairs) has words not seen in training. The
corrector also learns from words with two typos ({train-twice:,} pairs in all): trained on single typos alone, it
memorized them.

A typo lies at the letters that it touches: the wrong letter, both letters of a swap, the letters on both sides of a
missing one, the whole run with a doubled one. A finder that names any of them is right; *first letter* counts only the
letter that it learned to name, the first of them. *Any fitting word* also counts other words of the list that a typo
turns into the same misspelling. *Attention on the typo*: in forced decoding of the right word, at the step that writes
the corrected letter, the corrector's attention has its largest weight on a letter of the typo. No training signal says
where to look. *Chance* is how often a random letter would be right. All figures are percentages; by kind of typo and by
corrected letter, they are of words of five letters and more.
"""


def page_lines(record: Record) -> Iterator[str]:
    """The page."""
    corpus = record["corpus"]
    yield INTRODUCTION.format(**corpus, **corpus["pairs"]).strip()
    for test, groups in record["tests"].items():
        yield from ("", f"## {test.capitalize()} words", "")
        yield from _headline(groups)
        for name, rows in groups.items():
            header = [TITLES[name], "n", *(title for _, title in COLUMNS), "chance"]
            cells = [[label, f"{row['n']:,}", *_cells(row)] for label, row in rows.items()]
            yield from ("", *table(header, cells))
    yield ""
    yield from _letters(record["letters"])
    yield from _training(record)


def _headline(groups: dict[str, dict[str, Record]]) -> Iterator[str]:
    if LONG_WORDS not in groups["words"]:
        return
    row = groups["words"][LONG_WORDS]
    titles = dict(COLUMNS)
    for key, goal in GOALS:
        low, high = (100 * end for end in interval(row[key], row["n"]))
        share = 100 * row[key] / row["n"]
        missed = ", missed" if share < goal else ""
        yield (
            f"- {titles[key]}: {share:.1f} % [{low:.1f}, {high:.1f}] of {row['n']:,} words of five letters and more "
            f"(goal: {goal} %{missed})"
        )


def _cells(row: Record) -> list[str]:
    shares = [f"{100 * row[key] / row['n']:.1f}" for key, _ in COLUMNS]
    return [*shares, f"{100 * row['chance']:.1f}"]


def _letters(letters: Record) -> Iterator[str]:
    nearest = letters["nearest"]
    of_vowels = [vowel for vowel in VOWELS if nearest[vowel] in VOWELS]
    others = [letter for letter in nearest if letter not in VOWELS]
    consonants = [letter for letter in others if nearest[letter] not in VOWELS]
    yield from ("## Do the vowels cluster?", "", f"![Letters](plots/{LETTERS})", "")
    yield (
        "The picture shows the corrector's letter embeddings on their first two principal components, which explain "
        f"{100 * sum(letters['shares']):.0f} % of variance. In all dimensions, by cosine, the nearest letter is a "
        f"vowel for {len(of_vowels)} of {len(VOWELS)} vowels "
        f"({', '.join(f'{vowel}-{nearest[vowel]}' for vowel in VOWELS)}, the vowel first), and a consonant for "
        f"{len(consonants)} of {len(others)} consonants."
    )
    yield from ("", "## Where the corrector looks", "", f"![Attention](plots/{MAPS})")


def _training(record: Record) -> Iterator[str]:
    yield from ("", "## How it was measured", "")
    for name, model in record["models"].items():
        training = model["training"]
        yield (
            f"- {name}: config `typos/{name}`{with_settings(record['set'])}, seed {model['seed']}, "
            f"{training['num_parameters']:,} parameters, "
            f"{training['epoch']} of {model['max_epochs']} epochs ({training['update']:,} updates), "
            f"{training['minutes']:.0f} minutes on one core, shared with other work; best validation score "
            f"(`{model['metric']}`): {training['best_score']:.2f}"
        )
    yield "- [low, high]: 95 % interval of a share (Wilson 1927)"
    yield f"- {provenance(record, 'typos')}"


def interval(right: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    z, share = 1.96, right / n
    middle, half = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def plot_letters(path: Path, letters: Record) -> None:
    """The letters on their first two principal components."""
    figure = new_figure(6.0, 5.0)
    axes = figure.subplots()
    for letter, (x, y) in letters["points"].items():
        color = COLORS["vowel" if letter in VOWELS else "consonant"]
        axes.plot(x, y, ".", color=color, markersize=2)
        axes.annotate(letter, (x, y), ha="center", va="center", color=color, fontsize=13, fontweight="bold")
    for kind, color in COLORS.items():
        axes.plot([], [], "s", color=color, label=f"{kind}s")
    axes.legend(frameon=False)
    axes.set_xlabel(f"first component, {100 * letters['shares'][0]:.0f} % of the variance")
    axes.set_ylabel(f"second component, {100 * letters['shares'][1]:.0f} %")
    save_figure(figure, path)
