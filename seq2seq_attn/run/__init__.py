"""A run: its directory, which training writes and everything else reads. It needs nothing outside
itself.

    config.yaml  environment.json  corpus.json (hashes of the text)  finished.json (at the end)
    model.safetensors (best)  last/ (for a resume)  manifest.json (the SHA-256 of all these files)
    <side>.tokenizer.json  <side>.sentencepiece.model  <side>.vocab
    sets/<split>.source  .references  .links (text of the validation and test sets, with a manifest)
    train.log  metrics.jsonl  TensorBoard events  hyps/<split>.txt  report.json  report.md
    reverse/ (a run directory with the model of the other direction, where an objective trains one)

Tensors are safetensors; the rest is plain text, JSON or YAML. There are no pickles. Writes are
atomic.
"""

from seq2seq_attn.run.choose import newest_run, open_runs
from seq2seq_attn.run.directory import LOCK, REVERSE, ModelInfo, Run

__all__ = ["LOCK", "REVERSE", "ModelInfo", "Run", "newest_run", "open_runs"]
