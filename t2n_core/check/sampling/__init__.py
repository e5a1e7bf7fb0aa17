"""Samples to check a model with, and how much its outputs change from one to another."""
