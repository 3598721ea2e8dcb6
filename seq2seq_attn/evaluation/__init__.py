"""Evaluation: translate test sets with trained runs, and score the translations."""
