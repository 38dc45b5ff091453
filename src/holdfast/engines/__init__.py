"""The same row function on one machine and on many."""
