"""Scores of translations and of alignments: strings and arrays in, score objects out; no model, no
torch."""
