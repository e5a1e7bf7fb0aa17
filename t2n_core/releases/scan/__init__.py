"""Scan of a release: its contents are asked of the library alone, and compared with the tables of this package."""
