"""The commands, which connect all other parts of the package."""
