"""Scores of translations and alignments, computed from strings and arrays without torch."""
