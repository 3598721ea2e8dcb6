"""Shared by all scripts: paired turns, records, pages, watched processes, sample inputs. Imports no other script."""
