"""The model of the PyTorch attention tutorial as its notebooks compute it, step by step, with
nothing rearranged.

A bidirectional GRU encoder; a decoder that concatenates its repeated state with all encoder states
at each step, one GRU step and one readout per step. `packed` is its older notebook: packed source
and a mask on the attention.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from seq2seq_attn.config import ModelConfig, load_config
from seq2seq_attn.data.batch import Batch
from seq2seq_attn.data.prepare import prepare_corpus
from seq2seq_attn.data.store import PreparedCorpus
from seq2seq_attn.files import write_lines
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.text.lines import read_lines
from seq2seq_attn.text.vocab import BOS, EOS, PAD

DROPOUT = 0.5
MAX_OUTPUT_LENGTH = 25
"""tokens; the notebook's limit when it translates"""
CHECKPOINT = "model"
Save = Callable[[Path], object]


class TutorialModel(nn.Module):
    """The tutorial's model, in the sizes of a configuration of the same function."""

    def __init__(
        self, config: ModelConfig, *, num_source_ids: int, num_target_ids: int, packed: bool
    ) -> None:
        super().__init__()
        embedding_size = config.embedding_size
        hidden_size = config.hidden_size or 2 * config.encoder.hidden_size
        self.packed = packed
        self.dropout = nn.Dropout(DROPOUT)
        self.source_embedding = nn.Embedding(num_source_ids, embedding_size)
        self.encoder = nn.GRU(embedding_size, hidden_size, bidirectional=True)
        self.bridge = nn.Linear(2 * hidden_size, hidden_size)
        self.attention = nn.Linear(3 * hidden_size, hidden_size)
        self.attention_vector = nn.Linear(hidden_size, 1, bias=False)
        self.target_embedding = nn.Embedding(num_target_ids, embedding_size)
        self.decoder = nn.GRU(2 * hidden_size + embedding_size, hidden_size)
        self.output = nn.Linear(3 * hidden_size + embedding_size, num_target_ids)

    def forward(
        self, source_SB: Tensor, lengths_B: Tensor, tgt_in_TB: Tensor, teacher_forcing_ratio: float
    ) -> Tensor:
        """Logits [T, B, V]."""
        mask_BS = (source_SB != 0).t() if self.packed else None
        states_BSM, hidden_BH = self.encode(source_SB, lengths_B if self.packed else None)
        logits = []
        previous_B = tgt_in_TB[0]
        for t in range(len(tgt_in_TB)):
            step_BV, hidden_BH = self.step(previous_B, hidden_BH, states_BSM, mask_BS)
            logits.append(step_BV)
            is_forced = torch.rand(()).item() < teacher_forcing_ratio
            if t + 1 < len(tgt_in_TB):
                previous_B = tgt_in_TB[t + 1] if is_forced else step_BV.argmax(1)
        return torch.stack(logits)

    def encode(self, source_SB: Tensor, lengths_B: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Encoder states [B, S, M] and the decoder's first state [B, H]; the source is packed where
        lengths are set."""
        embedded = self.dropout(self.source_embedding(source_SB))
        if lengths_B is None:
            states, final = self.encoder(embedded)
        else:
            packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths_B, enforce_sorted=False)
            states, final = self.encoder(packed)
            states, _ = nn.utils.rnn.pad_packed_sequence(states)
        return states.permute(1, 0, 2), torch.tanh(
            self.bridge(torch.cat([final[-2], final[-1]], dim=1))
        )

    def step(
        self, previous_B: Tensor, hidden_BH: Tensor, states_BSM: Tensor, mask_BS: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """One decoder step: logits [B, V] and the new state."""
        embedded = self.dropout(self.target_embedding(previous_B)).unsqueeze(0)
        repeated = hidden_BH.unsqueeze(1).repeat(1, states_BSM.shape[1], 1)
        energy = torch.tanh(self.attention(torch.cat([repeated, states_BSM], dim=2)))
        scores_BS = self.attention_vector(energy).squeeze(2)
        if mask_BS is not None:
            scores_BS = scores_BS.masked_fill(~mask_BS, -1e10)
        weights = torch.softmax(scores_BS, dim=1).unsqueeze(1)
        context = torch.bmm(weights, states_BSM).permute(1, 0, 2)
        output, hidden = self.decoder(torch.cat([embedded, context], dim=2), hidden_BH.unsqueeze(0))
        joined = torch.cat([output.squeeze(0), context.squeeze(0), embedded.squeeze(0)], dim=1)
        return self.output(joined), hidden.squeeze(0)

    def copy_weights(self, model: Seq2Seq) -> None:
        """Take the weights of ours (config `tutorial`): from then on both are the same function."""
        ours = dict(model.named_parameters())
        query = ours["decoder.attention.query_projection.weight"]
        key = ours["decoder.attention.key_projection.weight"]
        weights = {
            "source_embedding.weight": ours["encoder.embedding.weight"],
            "bridge.weight": ours["decoder.bridge.projection.weight"],
            "bridge.bias": ours["decoder.bridge.projection.bias"],
            "attention.weight": torch.cat([query, key], dim=1),
            "attention.bias": ours["decoder.attention.key_projection.bias"],
            "attention_vector.weight": ours["decoder.attention.score_weight_A"].unsqueeze(0),
            "target_embedding.weight": ours["embedding.weight"],
            "output.weight": ours["output.projection.weight"],
            "output.bias": ours["output.projection.bias"],
            **_gru_weights("encoder", "", "encoder.layers.0.0", ours),
            **_gru_weights("encoder", "_reverse", "encoder.layers.0.1", ours),
            **_gru_weights(
                "decoder", "", "decoder.cell", ours
            ),  # the tutorial's GRU reads [embedding; context]
        }
        self.load_state_dict(weights)


def _gru_weights(
    layer: str, suffix: str, cell: str, ours: dict[str, nn.Parameter]
) -> dict[str, Tensor]:
    """The weights of a `nn.GRU` layer, by their names there, from a cell of ours."""
    inputs: list[Tensor] = [
        tensor for name, tensor in ours.items() if name.startswith(f"{cell}.input_weights.")
    ]
    return {
        f"{layer}.weight_ih_l0{suffix}": torch.cat(inputs, dim=1),
        f"{layer}.bias_ih_l0{suffix}": ours[f"{cell}.input_bias_P"],
        f"{layer}.weight_hh_l0{suffix}": ours[f"{cell}.recurrent_weight_PH"],
        f"{layer}.bias_hh_l0{suffix}": ours[f"{cell}.recurrent_bias_P"],
    }


def tutorial_loss(model: TutorialModel, batch: Batch, ratio: float, reduction: str) -> Tensor:
    """Cross-entropy over all positions, padding ignored."""
    logits = model(batch.source.ids_BS.t(), batch.source.lengths_B, batch.tgt_in_BT.t(), ratio)
    targets = batch.tgt_out_BT.t().flatten()
    return nn.functional.cross_entropy(
        logits.flatten(0, 1), targets, ignore_index=PAD, reduction=reduction
    )


def tutorial_update(
    model: TutorialModel, optimizer: torch.optim.Optimizer, batch: Batch, ratio: float
) -> None:
    """An update of the weights."""
    optimizer.zero_grad()
    tutorial_loss(model, batch, ratio, "mean").backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def train(settings: Mapping[str, Any], after_update: Callable[[Save], object]) -> Save:
    """Train as the notebook does, on the corpus of the config `tutorial`: random batches, nothing
    packed or masked, weights from N(0, 0.01), teacher forcing 0.5.
    `after_update` gets a function that writes a checkpoint into a folder. Returns that
    function."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    config = load_config(["tutorial"], settings)
    prepared = prepare_corpus(config)
    pairs = prepared.pairs("train")
    size = config.train.batch.size
    model = TutorialModel(
        config.model,
        num_source_ids=len(prepared.source_vocab),
        num_target_ids=len(prepared.target_vocab),
        packed=False,
    )
    for name, parameter in model.named_parameters():
        nn.init.normal_(parameter, std=0.01) if "weight" in name else nn.init.zeros_(parameter)
    optimizer = torch.optim.Adam(model.parameters())

    def save(folder: Path) -> None:
        about = {"config": config.model.model_dump(mode="json"), "data": str(prepared.directory)}
        torch.save({"model": model.state_dict(), **about}, folder / CHECKPOINT)

    assert config.train.max_epochs is not None
    for epoch in range(config.train.max_epochs):
        order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(epoch)).tolist()
        for start in range(0, len(pairs), size):
            batch = pairs.batch(order[start : start + size], with_extended=False)
            tutorial_update(model, optimizer, batch, config.train.teacher_forcing.start)
            after_update(save)
    return save


@torch.no_grad()
def translate(checkpoint: Path, source: Path, output: Path) -> None:
    """Translate a file as the notebook does: one sentence after another, one token after
    another."""
    torch.set_num_threads(1)
    saved = torch.load(checkpoint / CHECKPOINT)
    prepared = PreparedCorpus(Path(saved["data"]))
    sizes = {
        "num_source_ids": len(prepared.source_vocab),
        "num_target_ids": len(prepared.target_vocab),
    }
    model = TutorialModel(ModelConfig(**saved["config"]), **sizes, packed=False).eval()
    model.load_state_dict(saved["model"])
    translations = []
    for line in read_lines(source):
        ids = prepared.source_vocab.ids_of(prepared.source_tokenizer.tokenize(line))
        states_BSM, hidden_BH = model.encode(torch.tensor([*ids, EOS]).unsqueeze(1))
        tokens = [BOS]
        while len(tokens) <= MAX_OUTPUT_LENGTH and tokens[-1] != EOS:
            logits_BV, hidden_BH = model.step(
                torch.tensor(tokens[-1:]), hidden_BH, states_BSM, None
            )
            tokens.append(int(logits_BV.argmax(1).item()))
        words = prepared.target_vocab.tokens_of([token for token in tokens[1:] if token != EOS])
        translations.append(prepared.target_tokenizer.detokenize(words))
    write_lines(output, translations)


if __name__ == "__main__":
    translate(*map(Path, sys.argv[1:]))
