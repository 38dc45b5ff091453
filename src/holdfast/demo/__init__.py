"""`holdfast demo`: real people turned down for a loan, what each can do, and whether it lasts."""
