"""Tokenizers: text to tokens and back, one file per kind."""
