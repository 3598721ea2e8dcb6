"""From a configuration to a model: the one place where configuration turns into plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from seq2seq_attn.config import ModelConfig
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.model.attention import build_attention
from seq2seq_attn.model.decoder import Decoder
from seq2seq_attn.model.encoder import build_encoder
from seq2seq_attn.model.seq2seq import Dropouts, Seq2Seq


def build_model(config: ModelConfig, *, num_source_ids: int, num_target_ids: int) -> Seq2Seq:
    """An initialised model; draws from the global generator.

    Raises:
        UsageError: an unknown variant, or sizes that do not fit together.
    """
    encoder = build_encoder(
        config.encoder.name,
        num_ids=num_source_ids,
        embedding_size=config.embedding_size,
        hidden_size=config.encoder.hidden_size,
        num_layers=config.encoder.num_layers,
        dropout=config.dropout.encoder,
    )
    hidden_size = config.hidden_size or encoder.memory_size
    attention = build_attention(
        config.attention.name,
        query_size=hidden_size,
        memory_size=encoder.memory_size,
        options=config.attention.options,
    )
    decoder = Decoder(
        num_target_ids,
        embedding_size=config.embedding_size,
        hidden_size=hidden_size,
        summary_size=encoder.memory_size,
        readout_size=config.readout_size,
        attention=attention,
    )
    rates = config.dropout
    model = Seq2Seq(encoder, decoder, Dropouts(rates.embedding, rates.token, rates.readout))
    initialize(model)
    if config.tie_embeddings != "none":
        _tie(model, tie_source=config.tie_embeddings == "all")
    return model


def expected_tensors(config: ModelConfig, *, num_source_ids: int, num_target_ids: int) -> dict[str, Tensor]:
    """The names and shapes of the tensors of a model, on the meta device: they take no memory.

    Raises:
        UsageError: as `build_model`.
    """
    with torch.device("meta"), _WithoutNumbers():
        return build_model(config, num_source_ids=num_source_ids, num_target_ids=num_target_ids).state_dict()


class _WithoutNumbers(TorchFunctionMode):
    """Tensors are made, but neither filled nor scaled. On the meta device both do nothing, and yet the first call
    imports 800 modules, which takes more than a second."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        is_init = getattr(function, "__module__", None) == nn.init.__name__
        if is_init or function in (Tensor.normal_, Tensor.uniform_, Tensor.div):
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return function(*args, **kwargs)


def initialize(model: Seq2Seq) -> None:
    """Glorot-uniform input matrices, orthogonal recurrent ones (a block a gate), zero biases, embeddings N(0, 1/E)."""
    for name, parameter in model.named_parameters():
        if parameter.is_meta:
            continue
        if "embedding.weight" in name:
            nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
        elif "recurrent_weight" in name:
            with torch.no_grad():
                blocks = parameter.view(-1, parameter.shape[-1], parameter.shape[-1])
                for block in blocks:
                    nn.init.orthogonal_(block)
        elif parameter.dim() == 2 and parameter.numel() > 0:
            nn.init.xavier_uniform_(parameter)
        elif "bias" in name:
            nn.init.zeros_(parameter)


def count_parameters(model: nn.Module) -> int:
    """Trained numbers; a tied matrix counts once."""
    return sum(parameter.numel() for parameter in model.parameters())


def _tie(model: Seq2Seq, *, tie_source: bool) -> None:
    """Press and Wolf 2017: the output layer's weights are the target embedding (and the source's)."""
    decoder = model.decoder
    if decoder.output.weight.shape != decoder.embedding.weight.shape:
        raise UsageError(
            f"model.tie_embeddings needs model.readout_size={decoder.embedding.embedding_dim} (model.embedding_size): "
            f"the output layer must have the embedding's shape; readout features are {decoder.output.in_features} wide"
        )
    decoder.output.weight = decoder.embedding.weight
    if not tie_source:
        return
    if model.encoder.embedding.weight.shape != decoder.embedding.weight.shape:
        raise UsageError(
            "model.tie_embeddings=all needs one vocabulary for both sides: set data.vocab.joint=true "
            f"({model.encoder.embedding.num_embeddings} source and {decoder.embedding.num_embeddings} target ids)"
        )
    model.encoder.embedding.weight = decoder.embedding.weight


def load_weights(model: Seq2Seq, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Give a model the tensors of a file, which has its names and shapes.

    Raises:
        UserError: they are not all numbers.
    """
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise UserError(
                f"{path}: {name} holds values that are no numbers; it is damaged: copy or train the run again"
            )
    model.load_state_dict(tensors)
