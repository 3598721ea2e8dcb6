"""The corpus and the small models that the four chapters share. A chapter trains what is missing."""

import bz2
import os
import random
import re
from collections import Counter
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import torch

import seq2seq_attn

CAPTIONS = Path("data/captions")
# In a clone, all paths start at its folder, whichever folder the notebook was opened in. Elsewhere they start at the folder
# of the notebook, and the corpus is the installed package's.
for folder in (Path.cwd(), *Path.cwd().parents):
    if (folder / CAPTIONS).is_dir():
        os.chdir(folder)
        break
else:
    CAPTIONS = Path(str(files("seq2seq_attn"))) / "_packaged" / CAPTIONS
TEXT, RUNS = Path("runs/learn/text"), Path("runs/learn")

NUM_TYPES = 800
"""each language keeps its most frequent types"""
MAX_WORDS = 16
"""in a German sentence, punctuation included"""

SMALL = {
    "data.limit": None,
    "model.embedding_size": 64,
    "model.hidden_size": 128,
    "model.readout_size": 64,
    "model.encoder.hidden_size": 64,
    "train.max_epochs": None,
    "train.optimizer.learning_rate": 5e-3,
    "train.checkpoint_every_updates": 10_000,
}
"""changes to the configuration `quickstart`: half the size, and all of the text"""


def words(text: str) -> list[str]:
    """Words and punctuation marks."""
    return re.findall(r"\w+|[^\w\s]", text)


def captions() -> dict[str, tuple[list[str], list[str]]]:
    """German and English lines of `train`, `valid` and `test`: the short sentences of the embedded corpus that have
    frequent words only. They are also written to runs/learn/text."""
    columns = [
        bz2.open(CAPTIONS / f"train.{language}.bz2", "rt", encoding="utf-8")
        for language in ("de", "en")
    ]
    pairs = list(
        dict.fromkeys(zip(*(column.read().splitlines() for column in columns), strict=True))
    )
    known = []
    for side in (0, 1):
        counts = Counter(word for pair in pairs for word in words(pair[side]))
        known.append({word for word, _ in counts.most_common(NUM_TYPES)})
    pairs = [
        pair
        for pair in pairs
        if len(words(pair[0])) <= MAX_WORDS
        and all(known[side].issuperset(words(pair[side])) for side in (0, 1))
    ]
    random.Random(1).shuffle(pairs)
    parts = {"test": pairs[:1000], "valid": pairs[1000:1200], "train": pairs[1200:]}
    TEXT.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        for side, language in enumerate(("de", "en")):
            lines = "".join(f"{pair[side]}\n" for pair in part)
            (TEXT / f"{name}.{language}").write_text(lines, encoding="utf-8")
    return {
        name: ([source for source, _ in part], [target for _, target in part])
        for name, part in parts.items()
    }


def train(
    attentions: Sequence[str], *, num_updates: int = 1000, seeds: Sequence[int] = (1,)
) -> dict[str, Path]:
    """Train a model for each attention and seed, as many at once as there are cores. The runs by their names, such as
    `additive-s1`; a finished run is reused."""
    folder = RUNS / f"{num_updates}-updates"
    runs = {f"{name}-s{seed}": folder / f"{name}-s{seed}" for seed in seeds for name in attentions}
    if not all((run / "finished.json").exists() for run in runs.values()):
        captions()
        settings = {
            **SMALL,
            "train.max_updates": num_updates,
            "train.validation.every_updates": num_updates // 2,
        }
        text = {"train_text": f"{TEXT}/train", "valid_text": f"{TEXT}/valid"}
        languages = {"source_language": "de", "target_language": "en"}
        varied = {"attention": list(attentions)}
        seq2seq_attn.compare(
            "quickstart", varied, settings, seeds=seeds, output=folder, **text, **languages
        )
    return runs


class Steps:
    """The decoder of chapter 2 by hand, one step for several prefixes of a translation at once: R rows, V words."""

    def __init__(self, translator: seq2seq_attn.Translator, sentence: str) -> None:
        self.vocab = translator.target_vocab
        self.weights = translator.model.state_dict()
        self.pad, self.bos, self.eos = (
            self.vocab.tokens.index(name) for name in ("<pad>", "<bos>", "<eos>")
        )
        ids = translator.source_vocab.ids_of(translator.source_tokenizer.tokenize(sentence))
        embedded = self.weights["encoder.embedding.weight"][[*ids, self.eos]]
        forward, backward = (
            self._read(number, row) for number, row in enumerate((embedded, embedded.flip(0)))
        )
        self.values = torch.cat([forward, backward.flip(0)], dim=1)
        self.last = torch.cat([forward[-1], backward[-1]])
        self.start = torch.tanh(self._linear("decoder.bridge.projection", self.last))[None]
        if translator.has_attention:
            self.keys = self._linear("decoder.attention.key_projection", self.values)

    def __call__(
        self, ids: Sequence[int], states: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """After the last words of R prefixes and their states [R, H]: log-probabilities of the next word [R, V], and
        the next states."""
        context = self._attend(states)
        embedded = self.weights["embedding.weight"][list(ids)]
        states = self._gru("decoder.cell", [embedded, context], states)
        features = torch.tanh(
            self._linear(
                "decoder.readout.projection", torch.cat([states, context, embedded], dim=1)
            )
        )
        logits = self._linear("output.projection", features)
        log_probs = torch.log_softmax(logits, dim=1)
        log_probs[:, [self.pad, self.bos]] = -torch.inf  # words that no search may write
        return log_probs, states

    def _attend(self, states: torch.Tensor) -> torch.Tensor:
        """The contexts; for a model with a fixed vector, that vector."""
        if not hasattr(self, "keys"):
            return self.last.expand(len(states), -1)
        queries = states @ self.weights["decoder.attention.query_projection.weight"].T
        scores = (
            torch.tanh(self.keys + queries[:, None])
            @ self.weights["decoder.attention.score_weight_A"]
        )
        return torch.softmax(scores, dim=1) @ self.values

    def _read(self, number: int, inputs: torch.Tensor) -> torch.Tensor:
        cell = f"encoder.layers.0.{number}"
        states = [torch.zeros(1, self.weights[f"{cell}.recurrent_weight_PH"].shape[1])]
        for row in inputs:
            states.append(self._gru(cell, [row[None]], states[-1]))
        return torch.cat(states[1:])

    def _gru(self, cell: str, inputs: Sequence[torch.Tensor], states: torch.Tensor) -> torch.Tensor:
        x = self.weights[f"{cell}.input_bias_P"] + sum(
            part @ self.weights[f"{cell}.input_weights.{number}"].T
            for number, part in enumerate(inputs)
        )
        h = (
            states @ self.weights[f"{cell}.recurrent_weight_PH"].T
            + self.weights[f"{cell}.recurrent_bias_P"]
        )
        (x_r, x_z, x_n), (h_r, h_z, h_n) = x.chunk(3, dim=1), h.chunk(3, dim=1)
        r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
        return (1 - z) * torch.tanh(x_n + r * h_n) + z * states

    def _linear(self, name: str, inputs: torch.Tensor) -> torch.Tensor:
        return inputs @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
