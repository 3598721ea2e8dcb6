"""Build and initialize a model from its configuration. Variants receive plain numbers, not
configuration objects."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.decoder.base import Decoder, DecoderSettings
from seq2seq_attn.model.encoder.base import Encoder
from seq2seq_attn.model.layers import Embedding, SourceEmbedding, VectorEmbedding
from seq2seq_attn.model.output.base import Output
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.model.sources import SeveralSources
from seq2seq_attn.model.variants import build_variant, find_build
from seq2seq_attn.text.tokenizers.base import Side

ENCODER_SHORTHANDS = {
    "bigru": ("bidirectional", "gru"),
    "bilstm": ("bidirectional", "lstm"),
    "reversed_gru": ("reversed", "gru"),
}
"""encoder names that imply a cell, as (encoder, cell)"""


def build_model(
    config: ModelConfig,
    *,
    num_source_ids: int,
    num_target_ids: int,
    vector_sizes: Sequence[int | None] = (None,),
    is_loaded: bool = False,
) -> Seq2Seq:
    """Build a model and initialize it with the global random generator. With several sources, each
    source has an encoder of its own.

    Args:
        vector_sizes: for each source, the dimension of its vectors; None for text.
        is_loaded: whether saved values will replace the initial ones. `initialize` is then left
            out, as it takes a second for large recurrent matrices.

    Raises:
        UsageError: a variant is unknown, or sizes do not fit together.
    """
    encoder = _build_encoder(config, num_source_ids, vector_sizes)
    decoder = _build_decoder(config, encoder)
    output = _build_output(config, encoder, decoder, num_source_ids, num_target_ids)
    embedding = Embedding(num_target_ids, config.embedding_size, dropout=config.dropout.embedding)
    model = Seq2Seq(encoder, embedding, decoder, output)
    if not is_loaded:
        initialize(model)
    if config.tie_embeddings != "none":
        _tie(model, tie_source=config.tie_embeddings == "all")
    _freeze_embeddings(model, config)
    return model


def _build_encoder(
    config: ModelConfig, num_ids: int, vector_sizes: Sequence[int | None]
) -> Encoder:
    settings = config.encoder
    name, cell = ENCODER_SHORTHANDS.get(settings.name, (settings.name, settings.cell))
    embedding_size = config.embedding_size
    dropout = config.dropout.embedding
    build_encoder = partial(
        build_variant,
        "encoder",
        name,
        settings.options,
        build_cell=partial(build_variant, "cell", cell, {}),
        hidden_size=settings.hidden_size,
        num_layers=settings.num_layers,
        dropout=config.dropout.encoder,
    )
    text_embedding = None
    if None in vector_sizes:
        text_embedding = Embedding(num_ids, embedding_size, dropout=dropout)
    encoders: list[Encoder] = []
    for size in vector_sizes:
        embedding: SourceEmbedding | None = text_embedding
        if size:
            embedding = VectorEmbedding(size, embedding_size, dropout=dropout)
        encoders.append(build_encoder(embedding=embedding))
    if len(encoders) == 1:
        return encoders[0]
    if not encoders[0].keeps_positions:
        raise UsageError(
            f"model.encoder.name={settings.name!r}: has positions of its own, which works with one "
            "source; choose another encoder, such as bigru"
        )
    return SeveralSources(encoders)


def _build_decoder(config: ModelConfig, encoder: Encoder) -> Decoder:
    """Build the decoder, which builds its cells and its attention."""
    build_attention = partial(
        build_variant,
        "attention",
        config.attention.name,
        config.attention.options,
        unmet=_find_unmet_by_encoder(config, encoder),
        memory_size=encoder.memory_size,
        normalizer=find_build("normalizer", config.attention.normalizer, function="weights"),
    )
    settings = DecoderSettings(
        build_cell=partial(build_variant, "cell", config.decoder.cell, {}),
        build_attention=build_attention,
        embedding_size=config.embedding_size,
        hidden_size=config.hidden_size or encoder.memory_size,
        memory_size=encoder.memory_size,
        readout_size=config.readout_size,
        num_layers=config.decoder.num_layers,
        dropout=config.dropout.readout,
    )
    decoder: Decoder = build_variant(
        "decoder", config.decoder.name, config.decoder.options, settings=settings
    )
    return decoder


def _build_output(
    config: ModelConfig,
    encoder: Encoder,
    decoder: Decoder,
    num_source_ids: int,
    num_target_ids: int,
) -> Output:
    output: Output = build_variant(
        "output",
        config.output.name,
        config.output.options,
        feature_size=decoder.feature_size,
        hidden_size=config.hidden_size or encoder.memory_size,
        context_size=decoder.attention.context_size,
        embedding_size=config.embedding_size,
        memory_size=encoder.memory_size,
        num_ids=num_target_ids,
        num_source_ids=num_source_ids,
        source_embedding=encoder.token_embedding,
        read_out=decoder.read_out,
        unmet=find_unmet(config, encoder, decoder),
    )
    return output


def find_unmet(config: ModelConfig, encoder: Encoder, decoder: Decoder) -> dict[str, str]:
    """Return the requirements of outputs and objectives that this model does not meet. The value of
    each is the reason that `build_variant` puts into the error for a variant with that
    requirement."""
    attention = decoder.attention
    attention_name = f"model.attention.name={config.attention.name!r}"
    decoder_name = f"model.decoder.name={config.decoder.name!r}"
    instead = "choose another attention, such as additive"
    requirements = {
        "source_attention": (
            attention.is_positional,
            f"reads attention weights over source positions, and {attention_name} has none; "
            f"{instead}",
        ),
        "distribution": (
            attention.is_distribution,
            f"takes attention weights for probabilities, and those of {attention_name} need not "
            f"sum to 1; {instead}",
        ),
        "soft_weights": (
            not attention.is_one_hot,
            f"sums over source positions, and {attention_name} gives all weight to one position; "
            f"{instead}",
        ),
        "query_dependence": (
            attention.depends_on_query,
            f"has no parameters, and {attention_name} always gives the same weights, so there is "
            f"nothing to learn; {instead}",
        ),
        "query_with_token": (
            decoder.queries_with_token,
            f"predicts by the attention weights, and {decoder_name} asks for them before it has "
            "read the previous token; set model.decoder.name to conditional or luong",
        ),
        "drawn_positions": (
            attention.draws_positions,
            "reads which source positions the attention has drawn: set model.attention.name=hard "
            "and model.attention.options.estimator=reinforce",
        ),
        "read_out": (
            decoder.read_out is not None,
            f"reads out each source value, and {decoder_name} has no `read_out`",
        ),
    }
    unmet = {name: reason for name, (is_met, reason) in requirements.items() if not is_met}
    return unmet | _find_unmet_by_encoder(config, encoder)


def _find_unmet_by_encoder(config: ModelConfig, encoder: Encoder) -> dict[str, str]:
    encoder_name = f"model.encoder.name={config.encoder.name!r}"
    unmet = {}
    if not encoder.keeps_positions:
        unmet["token_values"] = (
            f"needs a value for each source token, and {encoder_name} has positions of its own; "
            "choose another encoder, such as bigru"
        )
    if encoder.token_embedding is None:
        unmet["source_embedding"] = (
            f"reads the embeddings of source tokens, and {encoder_name} has none, or reads a "
            "source of vectors; add -c output/softmax"
        )
    return unmet


def model_without_weights(config: ModelConfig, **sizes: Any) -> Seq2Seq:
    """Build a model on the meta device: its tensors take no memory, and no random numbers are
    drawn. `sizes` are the keyword arguments of `build_model`.

    Raises:
        UsageError: a variant is unknown, or sizes do not fit together.
    """
    with torch.device("meta"), _WithoutInit():
        return build_model(config, is_loaded=True, **sizes)


class _WithoutInit(TorchFunctionMode):
    """Skip operations that fill or scale tensors. On the meta device they have no effect, yet their
    first call imports 800 modules, which takes more than a second."""

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        is_init = getattr(function, "__module__", None) == nn.init.__name__
        if is_init or function in (Tensor.normal_, Tensor.uniform_, Tensor.div):
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return function(*args, **kwargs)


def initialize(model: nn.Module) -> None:
    """Initialize every parameter by its name and shape.

    - Embeddings are drawn from N(0, 1/E).
    - Biases are 0.
    - Recurrent matrices are orthogonal, with one block per gate.
    - Other matrices are Glorot-uniform. Each matrix of a stack counts by itself, but the gates of a
      cell's input matrix count as one matrix. The filters of a convolution have their width as part
      of the fan-in and fan-out.
    - Vectors, and the score vector of each head, are uniform in +-1 / sqrt(size).
    - Scalars, the factors of PyTorch's normalization layers and parameters whose own name contains
      `norm` keep their values.

    Then each module that has a method `init_parameters()` sets those of its parameters that need
    other values.
    """
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            _initialize_parameter(module, name, parameter)
    with torch.no_grad():
        for module in model.modules():
            init_parameters = getattr(module, "init_parameters", None)
            if init_parameters is not None:
                init_parameters()


def _initialize_parameter(module: nn.Module, name: str, parameter: nn.Parameter) -> None:
    """Initialize a parameter that belongs to `module` itself."""
    if isinstance(module, nn.Embedding):
        nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
    elif "bias" in name:
        nn.init.zeros_(parameter)
    elif parameter.numel() == 0 or parameter.dim() == 0 or "norm" in name:
        return
    elif isinstance(module, nn.LayerNorm | nn.RMSNorm | nn.GroupNorm):
        return
    elif name.startswith(("recurrent_weight", "weight_hh")):
        for block in parameter.detach().view(-1, parameter.shape[-1], parameter.shape[-1]):
            nn.init.orthogonal_(block)
    elif parameter.dim() == 1 or name.startswith("score_weight"):
        bound = parameter.shape[-1] ** -0.5
        nn.init.uniform_(parameter, -bound, bound)
    elif isinstance(module, nn.Conv1d):
        nn.init.xavier_uniform_(parameter)
    else:
        for matrix in parameter.detach().view(-1, *parameter.shape[-2:]):
            nn.init.xavier_uniform_(matrix)


def count_parameters(model: nn.Module) -> int:
    """Return the number of parameters, frozen parameters included. Tied matrices count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def _tie(model: Seq2Seq, *, tie_source: bool) -> None:
    """Share the target embedding with the output layer, and with the source embedding (Press and
    Wolf 2017)."""
    projection = model.output.projection
    embedding = model.embedding
    if projection is None:
        raise UsageError(
            "model.tie_embeddings: this output has no weights to tie; set model.tie_embeddings=none"
        )
    if projection.weight.shape != embedding.weight.shape:
        raise UsageError(
            f"model.tie_embeddings needs model.readout_size={embedding.embedding_dim} "
            "(model.embedding_size): the output layer must have the embedding's shape; its "
            f"features are {projection.in_features} wide"
        )
    projection.weight = embedding.weight
    if not tie_source:
        return
    source = embedding_of(model, "source")
    if source.weight.shape != embedding.weight.shape:
        raise UsageError(
            "model.tie_embeddings=all needs one vocabulary for both sides: set "
            "data.vocab.joint=true"
        )
    source.weight = embedding.weight


def embedding_of(model: Seq2Seq, side: Side) -> Embedding:
    """Return the embedding of the tokens of a side.

    Raises:
        UsageError: the encoder has no embedding of tokens.
    """
    embedding = model.embedding if side == "target" else model.encoder.token_embedding
    if embedding is None:
        raise UsageError(
            "model.encoder: it has no embedding of tokens; set model.tie_embeddings to target or "
            "none, and model.embedding.source_vectors=null"
        )
    return embedding


def _freeze_embeddings(model: Seq2Seq, config: ModelConfig) -> None:
    """Leave embeddings with pretrained vectors out of training, if the configuration asks for
    it."""
    sides = list(config.embedding.files())
    embeddings = [embedding_of(model, side) for side in sides]
    if len(sides) == 2 and config.tie_embeddings == "all":
        raise UsageError(
            "model.tie_embeddings=all: both sides share one embedding; set only one of "
            "model.embedding.source_vectors and target_vectors"
        )
    if not config.embedding.freeze or not sides:
        return
    if config.tie_embeddings == "all" or (config.tie_embeddings == "target" and "target" in sides):
        raise UsageError(
            f"model.embedding.freeze=true: model.tie_embeddings={config.tie_embeddings} would "
            "freeze the output layer too; set model.tie_embeddings=none"
        )
    for embedding in embeddings:
        embedding.weight.requires_grad_(False)
