"""What follows from noisy numbers: columns, intervals, order and rank, by post-processing alone."""
