"""Prepare corpora, store them as ids on disk, and build padded batches."""
