"""The rows of the bench: one per mechanism, listed from `configs/`. A new variant has a row without an entry here.

Importing this needs the standard library only.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from textwrap import dedent

from scripts.laboratory.harness.records import RECORDS, ROOT

CAPTIONS, MULTI30K = "quickstart", "multi30k-short"
"""the config under each row's overlay: of the table, and of its column for Multi30k"""
FOLDER = RECORDS / "mechanisms"
PICTURES = ROOT / "docs" / "plots" / "mechanisms"
BASELINE = "attention/additive"
OF_BASELINE = ("normalizer/softmax", "encoder/bigru", "cell/gru", "decoder/bahdanau", "output/softmax")
"""the other parts of `quickstart`: these overlays change nothing"""
FORMER_NAMES = ("attention/none",)
NOT_IN_BENCH = {
    "output/pointer": (
        "Not in the bench, as its targets are made of source tokens; `configs/typos/finder.yaml` uses it."
    ),
    "objective/minimum_risk": "Not in the bench, because it continues from a trained model.",
}
"""mechanisms that are not trained like the others, with the reason"""
AXES = ("attention", "normalizer", "encoder", "cell", "decoder", "output", "objective")
FILES = {
    "encoder/bigru": "model/encoder/bidirectional.py",
    "encoder/bilstm": "model/encoder/bidirectional.py",
    "encoder/reversed_gru": "model/encoder/reversed.py",
}
"""where the file is not named after the config"""


@dataclass(frozen=True)
class Row:
    """A mechanism with its options: an overlay over `quickstart`, and settings over that."""

    overlay: str
    """`attention/local`; its name too, unless there is a suffix"""
    suffix: str = ""
    settings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """As `--rows` takes it."""
        return f"{self.overlay}-{self.suffix}" if self.suffix else self.overlay

    @property
    def stem(self) -> str:
        """The name as part of a file's name."""
        return self.name.replace("/", "-")

    @property
    def record_path(self) -> Path:
        """Its record."""
        return FOLDER / f"{self.stem}.json"

    @property
    def picture_path(self) -> Path:
        """Its attention on the example sentence, where it has been drawn."""
        return PICTURES / f"{self.stem}.png"

    @property
    def command(self) -> str:
        """How to train it."""
        settings = "".join(f" --set {setting}" for setting in self.settings)
        return f"seq2seq train -c {CAPTIONS} -c {self.overlay}{settings}"

    @property
    def source_path(self) -> Path:
        """The file of the mechanism."""
        axis, name = self.overlay.split("/")
        folder = "train/objectives" if axis == "objective" else f"model/{axis}"
        return ROOT / "seq2seq_attn" / FILES.get(self.overlay, f"{folder}/{name}.py")


WITH_OPTIONS = (
    Row("attention/additive", "160", ("model.attention.options.attention_size=160",)),
    Row("attention/bilinear", "scaled", ("model.attention.options.is_scaled=true",)),
    Row("attention/local", "scaled", ("model.attention.options.is_scaled=true",)),
    Row("attention/local", "monotonic", ("model.attention.options.window=monotonic",)),
    Row("attention/coverage", "linguistic", ("model.attention.options.kind=linguistic",)),
)
"""rows beside those of the configs"""
OF_TWO_MODELS = ("objective/agreement",)
"""overlays that train a second model beside the first"""

CHOICES = (
    ("a first model", ("attention/additive",), "fast, and well understood"),
    (
        "higher BLEU, with slower training",
        ("decoder/conditional", "output/lexical", "output/lexicon"),
        "the query has read the previous word; the prediction also sees translations of the attended words",
    ),
    (
        "higher BLEU on captions, with slower training",
        ("attention/structural", "attention/location"),
        "the score sees where attention was before; on Multi30k, the gain is within the noise of one seed",
    ),
    ("weights that align", ("decoder/conditional", "decoder/luong"), "the query has read the previous word"),
    ("a score without a hidden layer", ("attention/scaled_dot",), "unscaled scores lose BLEU: see `bilinear`"),
    (
        "names that are in no vocabulary",
        ("output/copynet", "output/copy"),
        "they copy source tokens ([how many names `copy` gets right](results.md#names-that-training-never-showed)); "
        "`--unk copy` does so with any output",
    ),
    (
        "rare words, from little text",
        ("output/lexicon", "output/lexical"),
        "they add translations of the attended source words to the prediction ([gain on natural "
        "text](results.md#lexicons-with-little-training-data))",
    ),
    (
        "a control",
        ("attention/fixed", "attention/uniform", "encoder/embeddings"),
        "no attention; equal weights for all words; an encoder without context",
    ),
)
"""the table to choose from: a wish, the rows that meet it, and why"""

QUESTIONS = {
    "attention/additive": "Which source words matter for the next word? The standard answer, and the baseline here.",
    "attention/additive-160": "How much does the width of the scoring layer matter? It is wider on captions, "
    "narrower on Multi30k.",
    "attention/dot": "Is a score without any parameters enough?",
    "attention/bilinear": "Is a single matrix between decoder state and encoder states enough?",
    "attention/bilinear-scaled": "Does dividing the scores by sqrt(H), H the query size, help?",
    "attention/scaled_dot": "Does the Transformer's score work in a recurrent decoder?",
    "attention/multi_head": "Does it help to look at several positions for different reasons at once?",
    "attention/key_value": "Should the same part of a state be scored and averaged?",
    "attention/location": "Does it help to know where attention was at the last step?",
    "attention/coverage": "How do I keep a model from translating a word twice, or leaving it out?",
    "attention/coverage-linguistic": "Is coverage as a running sum of attention, divided by fertility, enough?",
    "attention/structural": "Do the biases of classical alignment models help: order, neighborhood, fertility?",
    "attention/convolutional": "Can patterns in a word's neighborhood decide where to look?",
    "attention/local": "Is a window of the source enough, if the model chooses where it lies?",
    "attention/local-scaled": "Does dividing the scores help within a window?",
    "attention/local-monotonic": "Is a window that advances by one word per step enough?",
    "attention/hierarchical": "With several sources: which one, then which word? With one source it computes what "
    "`additive-160` does.",
    "attention/hard": "Must the context be an average, or can it be a single state?",
    "attention/monotonic": "Can the model translate while it reads, without ever going back?",
    "attention/self_history": "Should the decoder also look back at its own past states?",
    "attention/slots": "How far do four vectors per sentence go, instead of one per word?",
    "attention/fixed": "What does a model do without attention, with one vector for the whole sentence?",
    "attention/initial": "What if the decoder sees the source only in its initial state?",
    "attention/uniform": "Is it enough to see all states, without choosing among them?",
    "normalizer/softmax": "How do scores become weights? The standard answer.",
    "normalizer/sparsemax": "Can most weights be exactly zero?",
    "normalizer/entmax15": "Can some weights be exactly zero, with softer edges than sparsemax?",
    "encoder/bigru": "What should the decoder look at? The standard answer: states that have read both sides.",
    "encoder/bilstm": "Does an LSTM read the source better than a GRU?",
    "encoder/reversed_gru": "Is it enough to read the source from its end, in one direction?",
    "encoder/self_attention": "Can Transformer layers read the source for a recurrent decoder?",
    "encoder/convolutional": "Can the source be read without recurrence, all positions at once?",
    "encoder/embeddings": "How much context does the source side need at all? A control that has none.",
    "cell/gru": "What carries the state from step to step? The standard answer.",
    "cell/lstm": "Does a separate cell memory help?",
    "cell/layer_norm_gru": "Does layer normalization make a GRU train better?",
    "cell/layer_norm_lstm": "Does layer normalization make an LSTM train better?",
    "decoder/bahdanau": "When does the decoder look? Before its step, with its previous state.",
    "decoder/luong": "What if attention comes after the step, and feeds the next one?",
    "decoder/conditional": "What if attention comes between two cells?",
    "output/softmax": "How is the next word predicted? The standard answer: from the target vocabulary.",
    "output/copy": "How can the model write names that are in no vocabulary?",
    "output/history_pointer": "Can the model repeat its own words by pointing at them?",
    "output/copynet": "Should copying have scores of its own, instead of borrowing attention's?",
    "output/lexical": "Can rare words be translated straight from their embeddings, bypassing encoder and decoder?",
    "output/lexicon": "Does a dictionary that is estimated from the training pairs help?",
    "output/marginal": "What if each word is predicted from a single source position, summed over all positions?",
    "objective/coverage": "Can the loss keep attention from going to the same word twice?",
    "objective/fertility": "Can the loss make each source word get its share of attention?",
    "objective/entropy": "Can the loss make attention sharper?",
    "output/pointer": "What if the answer is a position of the source, and attention itself is the output?",
    "objective/reinforce": "Can a model learn where to look from the reward of having looked there?",
    "objective/agreement": "Can two models, one per direction, teach each other where to look?",
    "objective/r_drop": "Does it help if two passes with different dropout must predict the same?",
    "objective/minimum_risk": "Can a trained model learn from its own translations which of them are good?",
    "objective/guided": "Can word alignments teach attention where to look?",
}
"""the question that each row answers; a row without one shows the first sentence of its docstring"""

REASONS = {
    "attention/fixed": "no attention: one vector loses much even of short sentences, and most of long ones",
    "attention/initial": "no attention: only the decoder's first state depends on the source",
    "attention/uniform": "a control: the mean of all states has no order, and nothing is chosen",
    "attention/slots": "four vectors for a sentence hold less than one vector for each word",
    "attention/monotonic": "a negative control: German verbs at the end of a clause require moving backwards",
    "attention/local-monotonic": "its scores are those of `bilinear`, which does no better without a window",
    "attention/hard": "one state per step instead of a mixture, and gradients from samples",
    "attention/dot": "its scores are not scaled, and the weights become sharp: see the entropy, and `scaled_dot`",
    "attention/bilinear": "its scores are not scaled: the weights soon choose a single word, often a wrong one; see "
    "`bilinear-scaled`",
    "attention/local": "its scores are those of `bilinear`, which loses too; one seed of three fails on long "
    "sentences, as two of `local-scaled` do",
    "attention/local-scaled": "two seeds of three fail on long sentences, where the predicted center is off, and "
    "smaller scores do not outweigh the Gaussian around it",
    "attention/key_value": "the decoder sees half of each encoder state",
    "objective/guided": "the cause is not known: its weights align better than the baseline's, so errors in "
    "the links of IBM model 1 are not the whole reason",
    "objective/reinforce": "the reward alone does not teach the weights to align: see the alignment error rate",
    "encoder/embeddings": "a control: without context, a word's state does not say which of its senses is meant",
    "encoder/bilstm": "the cause is not known",
    "cell/lstm": "the cause is not known; a forget gate that starts open (bias 1) does not help, layer normalization "
    "does",
    "encoder/convolutional": "its keys see two words on either side and its values one; deeper stacks saturate",
    "encoder/self_attention": "trained with a recurrent encoder's learning rate and number of updates",
    "encoder/reversed_gru": "a state has read only what follows its word",
}
"""why a row may be more than 2 BLEU below the baseline; shown where it is"""


@cache
def all_rows() -> tuple[Row, ...]:
    """Every mechanism, axis after axis, the baseline first."""
    rows = [BASELINE_ROW]
    for axis in AXES:
        for path in sorted((ROOT / "configs" / axis).glob("*.yaml")):
            overlay = f"{axis}/{path.stem}"
            if overlay not in (*OF_BASELINE, *FORMER_NAMES, *NOT_IN_BENCH, BASELINE):
                rows.append(Row(overlay))
            rows += [row for row in WITH_OPTIONS if row.overlay == overlay]
    return tuple(rows)


def parts_of_baseline() -> tuple[Row, ...]:
    """The mechanisms that the baseline is made of besides its attention."""
    return tuple(Row(overlay) for overlay in OF_BASELINE)


def every_mechanism() -> tuple[Row, ...]:
    """The rows of the bench, and the mechanisms that are not rows; the parts of the baseline first."""
    return (*parts_of_baseline(), *all_rows(), *(Row(overlay) for overlay in NOT_IN_BENCH))


BASELINE_ROW = Row(BASELINE)


def docstring(row: Row) -> str:
    """The docstring of the mechanism's file."""
    return ast.get_docstring(ast.parse(row.source_path.read_text(encoding="utf-8"))) or ""


def introduction(row: Row) -> str:
    """The first paragraph of the docstring, as a single line."""
    return " ".join(docstring(row).split("\n\n")[0].split())


def question(row: Row) -> str:
    """The question that the mechanism answers."""
    return QUESTIONS.get(row.name) or re.split(r"(?<=[.?])\s|\s\(", introduction(row), maxsplit=1)[0].rstrip(":.") + "."


def explanation(row: Row) -> Iterator[str]:
    """The docstring after its first paragraph, as Markdown: its formulas as code, without shapes and measurements."""
    paragraphs = docstring(row).split("\n\n")[1:]
    for is_formula, found in groupby(paragraphs, key=lambda text: text.startswith("    ")):
        if is_formula:
            yield "```text\n" + dedent("\n\n".join(found)) + "\n```"
            continue
        for text in found:
            if not text.startswith(("Shapes", "In our measurements")):
                yield " ".join(text.split()).replace("*", r"\*")
