"""The network: encoders, attention variants, the decoder, and the two ways of unrolling it."""
