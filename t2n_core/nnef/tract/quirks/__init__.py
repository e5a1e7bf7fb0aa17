"""Statements that some releases compute wrongly or die of, each with what is written instead: `table.py` lists them."""
