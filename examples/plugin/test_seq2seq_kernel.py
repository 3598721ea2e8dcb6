"""The attention keeps the contract of seq2seq-attn, and weighs near keys more than distant ones."""

import subprocess
import sys
from pathlib import Path

import torch
from seq2seq_kernel import Kernel

from seq2seq_attn.files import packaged
from seq2seq_attn.model.normalizer import softmax


def test_the_attention_keeps_the_contract(tmp_path: Path) -> None:
    contract = [str(packaged("tests/contract")), "--import", "seq2seq_kernel"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *contract]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_near_key_scores_higher_than_a_distant_one() -> None:
    attention = Kernel(2, 3, softmax.weights)
    keys_BSA = torch.tensor([[[1.0, 0.0], [4.0, 0.0]]])
    assert attention.scores(torch.zeros(1, 2), keys_BSA).tolist() == [[-0.25, -4.0]]
