"""Blocks of work that wait for a GPU; see scripts/gpu. `plan` says which there are and keeps their records."""
