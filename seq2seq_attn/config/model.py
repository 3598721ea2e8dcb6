"""The settings of the model: the variant on each axis, sizes, dropout."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from seq2seq_attn.config.section import Section
from seq2seq_attn.config.types import (
    DropoutRate,
    FilePath,
    NumLayers,
    Options,
    Size,
)


class EmbeddingConfig(Section):
    """Pretrained word vectors: text files of a token and `embedding_size` numbers per line (word2vec, GloVe, fastText),
    read when training starts. `freeze`: embeddings with vectors are not trained, and types without a vector keep their
    random initialization."""

    source_vectors: FilePath | None = None
    target_vectors: FilePath | None = None
    freeze: bool = False

    def files(self) -> dict[Literal["source", "target"], Path]:
        """The file of each side that has one."""
        paths: dict[Literal["source", "target"], Path | None]
        paths = {"source": self.source_vectors, "target": self.target_vectors}
        return {side: path for side, path in paths.items() if path is not None}


class EncoderConfig(Section):
    """The encoder; `name` is a file of `model/encoder/`, or the shorthand `bigru`, `bilstm` or `reversed_gru`, which
    sets the cell too. `hidden_size` is the width of one direction; values are twice as wide, except in `reversed`.
    `cell`, which has no options, is a file of `model/cell/`; `options` are the encoder's own."""

    name: str = "bigru"
    cell: str = "gru"
    hidden_size: Size = 256
    num_layers: NumLayers = 1
    options: Options = {}


class AttentionConfig(Section):
    """The attention; `name` is a file of `model/attention/`, `normalizer` one of `model/normalizer/`, `options` are the
    attention's own (see its docstring)."""

    name: str = "additive"
    normalizer: str = "softmax"
    options: Options = {}


class DecoderConfig(Section):
    """The decoder; `name` is a file of `model/decoder/`, `cell` one of `model/cell/`, `options` are that variant's
    own."""

    name: str = "bahdanau"
    cell: str = "gru"
    num_layers: NumLayers = 1
    options: Options = {}


class OutputConfig(Section):
    """The output; `name` is a file of `model/output/`, `options` are that variant's own."""

    name: str = "softmax"
    options: Options = {}


class DropoutConfig(Section):
    """Dropout rates. `embedding`: on embeddings, both sides; `encoder`: between encoder layers and on its states
    (in `self_attention`, inside its layers);
    `readout`: between decoder layers and on the features that the output reads."""

    embedding: DropoutRate = 0.3
    encoder: DropoutRate = 0.3
    readout: DropoutRate = 0.3


class ModelConfig(Section):
    """The model.

    `hidden_size`: width of the decoder's state; None: that of the encoder's states, which `dot` attention needs.
    `readout_size`: width of a tanh layer before the output layer (Bahdanau's deep output); None: no such layer, the
    logits are linear in [state; context; embedding], as in the tutorial. In the decoder `luong` it is the width of the
    attentional state; None: `hidden_size`. `tie_embeddings`: `target` shares the target
    embedding with the output layer; `all` also the source embedding, which needs a joint vocabulary.
    """

    embedding_size: Size = 256
    hidden_size: Size | None = 512
    readout_size: Size | None = None
    tie_embeddings: Literal["none", "target", "all"] = "none"
    embedding: EmbeddingConfig = EmbeddingConfig()
    encoder: EncoderConfig = EncoderConfig()
    attention: AttentionConfig = AttentionConfig()
    decoder: DecoderConfig = DecoderConfig()
    output: OutputConfig = OutputConfig()
    dropout: DropoutConfig = DropoutConfig()
