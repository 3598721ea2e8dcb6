"""Measurements of speed and memory. Their records, and the page made of them, are in docs/speed."""
