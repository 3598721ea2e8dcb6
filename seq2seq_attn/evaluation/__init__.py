"""Evaluation: strings and runs in, score objects out."""
