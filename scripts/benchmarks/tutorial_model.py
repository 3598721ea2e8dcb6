"""The model of the PyTorch attention tutorial as its notebooks compute it, step by step, with nothing rearranged.

A bidirectional GRU encoder; a decoder that concatenates its repeated state with all encoder states at each step, one
GRU step and one readout a step. `packed` is its older notebook: packed source and a mask on the attention.
"""

import torch
from torch import nn


class TutorialModel(nn.Module):
    """Sizes as in the tutorial: embedding 256, hidden 512 each, dropout 0.5."""

    def __init__(self, num_source_ids, num_target_ids, *, packed, embedding_size=256, hidden_size=512, dropout=0.5):
        super().__init__()
        self.packed = packed
        self.dropout = nn.Dropout(dropout)
        self.source_embedding = nn.Embedding(num_source_ids, embedding_size)
        self.encoder = nn.GRU(embedding_size, hidden_size, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden_size, hidden_size)
        self.attention = nn.Linear(3 * hidden_size, hidden_size)
        self.attention_vector = nn.Linear(hidden_size, 1, bias=False)
        self.target_embedding = nn.Embedding(num_target_ids, embedding_size)
        self.decoder = nn.GRU(2 * hidden_size + embedding_size, hidden_size)
        self.output = nn.Linear(3 * hidden_size + embedding_size, num_target_ids)

    def forward(self, source_SB, lengths_B, tgt_in_TB, teacher_forcing_ratio):
        """Logits [T, B, V]."""
        embedded = self.dropout(self.source_embedding(source_SB))
        if self.packed:
            packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths_B, enforce_sorted=False)
            states, final = self.encoder(packed)
            states, _ = nn.utils.rnn.pad_packed_sequence(states)
            mask_BS = (source_SB != 0).t()
        else:
            states, final = self.encoder(embedded)
            mask_BS = None
        hidden = torch.tanh(self.bridge(torch.cat([final[-2], final[-1]], dim=1)))
        states_BSM = states.permute(1, 0, 2)
        logits, previous = [], tgt_in_TB[0]
        for t in range(len(tgt_in_TB)):
            step, hidden = self._step(previous, hidden, states_BSM, mask_BS)
            logits.append(step)
            is_forced = torch.rand(()).item() < teacher_forcing_ratio
            if t + 1 < len(tgt_in_TB):
                previous = tgt_in_TB[t + 1] if is_forced else step.argmax(1)
        return torch.stack(logits)

    def _step(self, previous, hidden, states_BSM, mask_BS):
        embedded = self.dropout(self.target_embedding(previous)).unsqueeze(0)
        repeated = hidden.unsqueeze(1).repeat(1, states_BSM.shape[1], 1)
        energy = torch.tanh(self.attention(torch.cat([repeated, states_BSM], dim=2)))
        scores = self.attention_vector(energy).squeeze(2)
        if mask_BS is not None:
            scores = scores.masked_fill(~mask_BS, -1e10)
        weights = torch.softmax(scores, dim=1).unsqueeze(1)
        context = torch.bmm(weights, states_BSM).permute(1, 0, 2)
        output, hidden = self.decoder(torch.cat([embedded, context], dim=2), hidden.unsqueeze(0))
        joined = torch.cat([output.squeeze(0), context.squeeze(0), embedded.squeeze(0)], dim=1)
        return self.output(joined), hidden.squeeze(0)


def tutorial_model(config, sizes, *, packed):
    """The tutorial's model in the sizes of a configuration of the same function."""
    own = {"embedding_size": config.embedding_size, "hidden_size": config.hidden_size}
    return TutorialModel(**sizes, **own, packed=packed)


def copy_weights(tutorial, model):
    """Give the tutorial's model the weights of ours (config `tutorial`): the same function."""
    layer, decoder, cell = model.encoder.layers[0], model.decoder, model.decoder.cell
    with torch.no_grad():
        tutorial.source_embedding.weight.copy_(model.encoder.embedding.weight)
        for direction, suffix in enumerate(("", "_reverse")):
            getattr(tutorial.encoder, f"weight_ih_l0{suffix}").copy_(layer[direction].input_weights[0])
            getattr(tutorial.encoder, f"bias_ih_l0{suffix}").copy_(layer[direction].input_bias_P)
            getattr(tutorial.encoder, f"weight_hh_l0{suffix}").copy_(layer[direction].recurrent_weight_PH)
            getattr(tutorial.encoder, f"bias_hh_l0{suffix}").copy_(layer[direction].recurrent_bias_P)
        tutorial.bridge.load_state_dict(decoder.bridge.projection.state_dict())
        query, key = decoder.attention.query_projection, decoder.attention.key_projection
        tutorial.attention.weight.copy_(torch.cat([query.weight, key.weight], dim=1))
        tutorial.attention.bias.copy_(key.bias)
        tutorial.attention_vector.weight.copy_(decoder.attention.score_weight_A.unsqueeze(0))
        tutorial.target_embedding.weight.copy_(model.embedding.weight)
        # the tutorial's GRU reads [embedding; context]
        tutorial.decoder.weight_ih_l0.copy_(torch.cat(list(cell.input_weights), dim=1))
        tutorial.decoder.bias_ih_l0.copy_(cell.input_bias_P)
        tutorial.decoder.weight_hh_l0.copy_(cell.recurrent_weight_PH)
        tutorial.decoder.bias_hh_l0.copy_(cell.recurrent_bias_P)
        tutorial.output.load_state_dict(model.output.projection.state_dict())
