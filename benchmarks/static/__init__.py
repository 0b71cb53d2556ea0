"""The static gate: what the compiler made of every kernel, exact and without a GPU."""
