"""Tokenizers: text to tokens and back, one file each."""
