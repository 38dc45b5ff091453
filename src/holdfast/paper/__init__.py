"""The paper that Holdfast grew from: its data, its algorithms as written, its tables and figures.

Everything that belongs to this one paper lives here. The wing imports the product; nothing in the
product imports it.
"""
