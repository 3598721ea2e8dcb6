"""Blocks of work that wait for a GPU: see scripts/gpu. `plan` lists them and keeps their records."""
