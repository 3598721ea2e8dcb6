"""From a configuration to a model: the one place where configuration turns into plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

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
    attention = build_attention(
        config.attention.name,
        query_size=config.hidden_size,
        memory_size=encoder.memory_size,
        options=config.attention.options,
    )
    decoder = Decoder(
        num_target_ids,
        embedding_size=config.embedding_size,
        hidden_size=config.hidden_size,
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


def initialize(model: Seq2Seq) -> None:
    """Glorot-uniform input matrices, orthogonal recurrent ones (a block a gate), zero biases, embeddings N(0, 1/E)."""
    for name, parameter in model.named_parameters():
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
    """Give a model the tensors of a file.

    Raises:
        UserError: they are not this model's, or not all numbers.
    """
    shapes = [{name: list(tensor.shape) for name, tensor in one.items()} for one in (tensors, model.state_dict())]
    different = [name for name in {**shapes[1], **shapes[0]} if shapes[0].get(name) != shapes[1].get(name)]
    if different:
        name = different[0]
        in_file, by_config = (f"{one[name]}" if name in one else "absent" for one in shapes)
        others = f", and {len(different) - 1} more" if len(different) > 1 else ""
        raise UserError(
            f"{path}: not the model of this run's config.yaml and vocabularies ({name}: {in_file} in the file, "
            f"{by_config} by the configuration{others}); copy the run again"
        )
    for name, tensor in tensors.items():
        if not torch.isfinite(tensor).all():
            raise UserError(
                f"{path}: {name} holds values that are no numbers; it is damaged: copy or train the run again"
            )
    model.load_state_dict(tensors)
