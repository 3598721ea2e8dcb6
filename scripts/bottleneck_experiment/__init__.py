"""The bottleneck experiment: translation quality by sentence length with attention, one fixed vector, or several."""
