"""Expressions of symbolic sizes, and the ranges that they are valid for."""
