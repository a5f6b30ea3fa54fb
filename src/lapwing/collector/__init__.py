"""The collector: it takes noisy reports, keeps them durably, counts each once, and says what they add up to.

Nobody has to trust it for local differential privacy: what it holds is noisy already. What is said of shuffled reports
takes trust in it, and the pages say so.
"""
