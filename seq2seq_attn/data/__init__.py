"""Data: corpora as ids on disk, and batches of them."""
