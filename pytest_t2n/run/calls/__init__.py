"""Calls of test functions, and their models and outcomes."""
