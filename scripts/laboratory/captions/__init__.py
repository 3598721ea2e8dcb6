"""Captions in German and English from a grammar: the embedded corpus, and corpora of experiments.

`python -m scripts.laboratory.captions` writes them.
"""
