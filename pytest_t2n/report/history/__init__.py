"""Runs over time: each is a Parquet file, DuckDB queries all of them, and a page shows the results."""
