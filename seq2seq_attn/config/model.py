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
    """Pretrained word vectors (word2vec, GloVe, fastText), which are read when training starts.
    Each line of a file has a token and `embedding_size` numbers."""

    source_vectors: FilePath | None = None
    target_vectors: FilePath | None = None
    freeze: bool = False
    """Whether pretrained embeddings stay fixed. The embedding layer is then not trained, and tokens
    without a pretrained vector keep their random initialization."""

    def files(self) -> dict[Literal["source", "target"], Path]:
        """Return the file of pretrained vectors for each side that has such a file."""
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
    """Width of the states of one direction. Values are twice as wide, except in `reversed`."""
    num_layers: NumLayers = 1
    options: Options = {}
    """Options of the encoder variant."""


class AttentionConfig(Section):
    """The attention."""

    name: str = "additive"
    """A file of `model/attention/`."""
    normalizer: str = "softmax"
    """A file of `model/normalizer/`."""
    options: NestedOptions = {}
    """Options of the attention variant."""


class DecoderConfig(Section):
    """The decoder."""

    name: str = "bahdanau"
    """A file of `model/decoder/`."""
    cell: str = "gru"
    """A file of `model/cell/`."""
    num_layers: NumLayers = 1
    options: Options = {}
    """Options of the decoder variant."""


class OutputConfig(Section):
    """The output."""

    name: str = "softmax"
    """A file of `model/output/`."""
    options: Options = {}
    """Options of the output variant."""


class DropoutConfig(Section):
    """Dropout rates. `embedding` applies to source and target embeddings. `encoder` applies between
    encoder layers and to the encoder states; in `self_attention`, it applies inside the layers.
    `readout` applies between decoder layers and to the features that the output reads."""

    embedding: DropoutRate = 0.3
    encoder: DropoutRate = 0.3
    readout: DropoutRate = 0.3


class ModelConfig(Section):
    """The model: sizes, and a variant on each axis."""

    embedding_size: Size = 256
    hidden_size: Size | None = 512
    """Width of the decoder state. None means the width of the encoder states, which `dot` attention
    needs."""
    readout_size: Size | None = None
    """Width of a tanh layer before the output layer (Bahdanau's deep output). None means no such
    layer: logits are linear in [state; context; embedding], as in the tutorial. In the decoder
    `luong`, it is the width of the attentional state, and None means `hidden_size`."""
    tie_embeddings: Literal["none", "target", "all"] = "none"
    """Which layers share their parameters. `target` is for the target embedding and the output
    layer. `all` adds the source embedding, which needs a joint vocabulary."""
    embedding: EmbeddingConfig = EmbeddingConfig()
    encoder: EncoderConfig = EncoderConfig()
    attention: AttentionConfig = AttentionConfig()
    decoder: DecoderConfig = DecoderConfig()
    output: OutputConfig = OutputConfig()
    dropout: DropoutConfig = DropoutConfig()
