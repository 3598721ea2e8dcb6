"""The model: a folder of variants for each axis, how they are built into one, and how it is unrolled."""
