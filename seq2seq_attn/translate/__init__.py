"""Strings to translations, scores and attention."""
