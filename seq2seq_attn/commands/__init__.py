"""The commands; the only package that knows all the others."""
