"""Kills of sessions, their workers and engines, and what their records say afterwards."""
