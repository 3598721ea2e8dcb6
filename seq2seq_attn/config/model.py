"""The settings of the model: the variant on each axis, sizes, dropout."""

from pathlib import Path
from typing import Literal

from seq2seq_attn.config.types import (
    DropoutRate,
    FilePath,
    NestedOptions,
    NumLayers,
    Options,
    Section,
    Size,
)


class EmbeddingConfig(Section):
    """Pretrained word vectors: text files of a token and `embedding_size` numbers per line
    (word2vec, GloVe, fastText), read when training starts."""

    source_vectors: FilePath | None = None
    target_vectors: FilePath | None = None
    freeze: bool = False
    """Embeddings with vectors are not trained, and types without a vector keep their random
    initialization."""

    def files(self) -> dict[Literal["source", "target"], Path]:
        """The file of each side that has one."""
        paths: dict[Literal["source", "target"], Path | None]
        paths = {"source": self.source_vectors, "target": self.target_vectors}
        return {side: path for side, path in paths.items() if path is not None}


class EncoderConfig(Section):
    """The encoder."""

    name: str = "bigru"
    """A file of `model/encoder/`, or the shorthand `bigru`, `bilstm` or `reversed_gru`, which sets
    the cell too."""
    cell: str = "gru"
    """A file of `model/cell/`."""
    hidden_size: Size = 256
    """Width of one direction; values are twice as wide, except in `reversed`."""
    num_layers: NumLayers = 1
    options: Options = {}
    """The encoder's own."""


class AttentionConfig(Section):
    """The attention."""

    name: str = "additive"
    """A file of `model/attention/`."""
    normalizer: str = "softmax"
    """A file of `model/normalizer/`."""
    options: NestedOptions = {}
    """The attention's own."""


class DecoderConfig(Section):
    """The decoder."""

    name: str = "bahdanau"
    """A file of `model/decoder/`."""
    cell: str = "gru"
    """A file of `model/cell/`."""
    num_layers: NumLayers = 1
    options: Options = {}
    """The decoder's own."""


class OutputConfig(Section):
    """The output."""

    name: str = "softmax"
    """A file of `model/output/`."""
    options: Options = {}
    """The output's own."""


class DropoutConfig(Section):
    """Dropout rates. `embedding`: on embeddings, both sides; `encoder`: between encoder layers and
    on its states (in `self_attention`, inside its layers); `readout`: between decoder layers and on
    the features that the output reads."""

    embedding: DropoutRate = 0.3
    encoder: DropoutRate = 0.3
    readout: DropoutRate = 0.3


class ModelConfig(Section):
    """The model: sizes, and a variant on each axis."""

    embedding_size: Size = 256
    hidden_size: Size | None = 512
    """Width of the decoder's state. None: that of the encoder's states, which `dot` attention
    needs."""
    readout_size: Size | None = None
    """Width of a tanh layer before the output layer (Bahdanau's deep output). None: no such layer,
    logits are linear in [state; context; embedding], as in the tutorial. In the decoder `luong`:
    width of the attentional state; None: `hidden_size`."""
    tie_embeddings: Literal["none", "target", "all"] = "none"
    """`target` shares the target embedding with the output layer, `all` also the source embedding,
    which needs a joint vocabulary."""
    embedding: EmbeddingConfig = EmbeddingConfig()
    encoder: EncoderConfig = EncoderConfig()
    attention: AttentionConfig = AttentionConfig()
    decoder: DecoderConfig = DecoderConfig()
    output: OutputConfig = OutputConfig()
    dropout: DropoutConfig = DropoutConfig()
