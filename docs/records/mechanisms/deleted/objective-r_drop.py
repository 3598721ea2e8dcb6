"""R-Drop: two passes with different dropout should predict the same (Liang et al. 2021, "R-Drop: Regularized Dropout
for Neural Networks", section 2.1).

    L = sum_t 1/2 [ KL(p1_t || p2_t) + KL(p2_t || p1_t) ]

p1_t and p2_t are the distributions of target token t in the two passes. The cross-entropy and this term are divided by
the target tokens of both passes; the paper sums over both, so its total is twice ours, and the weight equals its alpha.

An update takes more than twice the time (docs/attention.md).
"""
