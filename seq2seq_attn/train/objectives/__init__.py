"""Training objectives: the file name is the objective's name, and this folder is the registry."""
