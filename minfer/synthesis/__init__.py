"""Models of random weights in a real model's shape and mix of quantisations: to measure and test without a download."""
