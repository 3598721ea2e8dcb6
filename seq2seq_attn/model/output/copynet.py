"""One softmax over generated and copied tokens, whose copying scores do not depend on the attention
(Gu et al. 2016, "CopyNet", section 3.2).

    p(w) = 1/Z [ exp psi_g(w) + sum_{j: x_j = w} exp psi_c(j) ]
    Z = sum_v exp psi_g(v) + sum_j exp psi_c(j)
    psi_g(w) = v_w . W_o features + b_o
    psi_c(j) = sigma(h_j^T W_c) s_t,  sigma = tanh

h_j is the encoder's value at source position j, s_t is the decoder's state, and W_c is
`copy_projection`. This output does not read attention weights. Tokens are compared as
`output/base.py` describes; in its terms p_gen is the generated share of Z, and a is softmax(psi_c).
The label smoothing acts on P_vocab = softmax(psi_g), as in `copy.py`.

The paper's selective read (section 3.3) is left out, because it changes the decoder: the next step
reads the encoder states of the copied positions.
"""

import torch
from torch import Tensor, nn

from seq2seq_attn.data.batch import SourceBatch
from seq2seq_attn.model.decoder.base import Memory, StepOutput
from seq2seq_attn.model.encoder.base import Encoded
from seq2seq_attn.model.layers import wide
from seq2seq_attn.model.output.base import Copying, CopyingOutput
from seq2seq_attn.text.vocab import PAD


class CopyNet(CopyingOutput):
    """CopyNet: one linear layer computes psi_g, and a second linear layer computes psi_c."""

    requires = ("token_values",)

    def __init__(
        self, *, feature_size: int, hidden_size: int, num_ids: int, memory_size: int
    ) -> None:
        super().__init__(feature_size, num_ids)
        self.copy_projection = nn.Linear(memory_size, hidden_size, bias=False)

    def prepare(self, encoded: Encoded, source: SourceBatch) -> Tensor:
        """Return `keys_BSH`, sigma(h_j^T W_c)."""
        return torch.tanh(self.copy_projection(encoded.values_BSM))

    def copying(self, step: StepOutput, memory: Memory) -> Copying:
        logits_BV = self.logits(step, memory)
        scores_BS = wide(torch.bmm(memory.output, step.hidden_BH.unsqueeze(2)).squeeze(2))
        scores_BS = scores_BS.masked_fill(memory.extended_ids_BS == PAD, -torch.inf)
        generated_B1 = logits_BV.logsumexp(dim=1, keepdim=True)
        copied_B1 = scores_BS.logsumexp(dim=1, keepdim=True)
        log_norm_B1 = torch.logaddexp(generated_B1, copied_B1)
        weights_BS = torch.softmax(scores_BS, dim=1)
        return Copying(
            logits_BV,
            generated_B1 - log_norm_B1,
            copied_B1 - log_norm_B1,
            weights_BS,
            memory.extended_ids_BS,
        )
