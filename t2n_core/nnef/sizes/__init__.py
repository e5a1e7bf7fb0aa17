"""Expressions of sizes, and the ranges that they are right for."""
