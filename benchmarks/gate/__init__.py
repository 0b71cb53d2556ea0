"""The CI gate: measures two commits next to each other and says whether the newer one is slower, with a known error rate."""
