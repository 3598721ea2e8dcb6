"""Output variants: the file name is the variant's name, and this folder is the registry."""
