"""Shared by all scripts: runs and their settings, records, pages, paired turns, watched processes,
sample inputs.

Imports no other script.
"""
