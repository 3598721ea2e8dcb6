"""What the worker processes of `prepare` run."""
