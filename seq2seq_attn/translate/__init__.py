"""Translate and score text, with attention maps."""
