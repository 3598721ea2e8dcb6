"""Knowledge distillation, a training objective whose teacher is another run (Hinton, Vinyals, Dean
2015; word-level for translation in Kim and Rush 2016, section 3.1).

    L = - sum_t sum_v q_t(v) log p_t(v)

p_t is the distribution of the student at target position t, and q_t that of the teacher, which
reads the same pair. The mean is over target tokens. `data.vocab_from` gives both runs one
vocabulary:

    seq2seq train -c quickstart --run-dir runs/teacher
    seq2seq train -c quickstart --import teacher --set data.vocab_from=runs/teacher \\
        --set 'train.objectives={teacher: {weight: 1, options: {run: runs/teacher}}}'
"""

from functools import cache

import torch
from torch import Tensor

from seq2seq_attn.errors import UsageError
from seq2seq_attn.model.output.base import DecoderOutputs
from seq2seq_attn.model.seq2seq import Seq2Seq
from seq2seq_attn.run import Run
from seq2seq_attn.text.vocab import PAD
from seq2seq_attn.train.objectives.base import Objective

LEAST_LOG_PROB = -100.0
"""of a token that cannot follow, whose log-probability is -inf"""


@cache
def load_teacher(run: str, device: torch.device) -> Seq2Seq:
    """The model of the run, which is read once, when the first batch needs it."""
    opened = Run.open(run)
    model, _ = opened.load_model(opened.config.model)
    return model.to(device).eval()


class Teacher(Objective):
    """The cross-entropy between the distributions of teacher and student."""

    def __init__(self, *, run: str) -> None:
        self._run = run

    def term(self, outputs: DecoderOutputs) -> Tensor:
        """See `Objective.term`."""
        real_I = (outputs.targets_N != PAD).nonzero().squeeze(1)
        teacher = load_teacher(self._run, real_I.device)
        with torch.no_grad():
            probs_IV = teacher(outputs.batch).log_probs_of(real_I).exp()
        log_probs_IV = outputs.log_probs_of(real_I).clamp_min(LEAST_LOG_PROB)
        if probs_IV.shape != log_probs_IV.shape:
            raise UsageError(
                f"train.objectives.teacher.options.run={self._run}: another vocabulary; set "
                f"data.vocab_from={self._run}"
            )
        total: Tensor = (probs_IV * log_probs_IV).sum()
        return -total
