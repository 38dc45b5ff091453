"""The machinery under everything: compiled kernels, threads, readers of numbers and labels."""
