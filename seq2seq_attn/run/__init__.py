"""A run directory. Training writes it; all other commands read it. It needs no files outside
itself.

    config.yaml  environment.json  corpus.json (hashes of the text, facts about its lines)
    finished.json (at the end)
    model.safetensors (best)  last/ (for a resume)  manifest.json (the SHA-256 of all these files)
    <side>.tokenizer.json  <side>.sentencepiece.model  <side>.vocab
    sets/<split>.source  .references  .links (text of the validation and test sets, with a manifest)
    train.log  metrics.jsonl  TensorBoard events  hyps/<split>.txt  report.json  report.md
    reverse/ (the run directory of the reverse model, if an objective trains one)

Tensors are stored as safetensors, and all other data as plain text, JSON or YAML. A run contains no
pickles. Files are written atomically.
"""

from seq2seq_attn.run.choose import Runs, newest_run, open_runs
from seq2seq_attn.run.directory import ModelInfo, Run
from seq2seq_attn.run.names import LOCK, REVERSE

__all__ = ["LOCK", "REVERSE", "ModelInfo", "Run", "Runs", "newest_run", "open_runs"]
