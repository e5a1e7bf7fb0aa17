"""Judgements: numbers that a check requires beside a level, and metrics of a user's own."""
