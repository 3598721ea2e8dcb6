"""The code that `prepare` runs in worker processes."""
