"""Prepared corpora (ids on disk) and batches."""
