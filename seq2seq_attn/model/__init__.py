"""The model: a folder of variants for each axis, the code that assembles them, and the unroll for
training."""
