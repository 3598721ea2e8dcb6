"""Tokens and characters that mark something in a line of tokens."""

SPACE = "▁"
"""U+2581, by which SentencePiece marks a space"""
STAND_IN = "\ue081"
"""a character for private use, which stands for a U+2581 of the text in tokens that mark spaces"""
SOURCE_END = "\t"
"""The token after each column of a source line but the last, and after each marked sentence. Its id
is EOS. No tokenizer creates it from text, because tabs become spaces before tokenization."""
