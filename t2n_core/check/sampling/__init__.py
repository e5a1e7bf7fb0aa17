"""Samples to check a model with, and how far its outputs move from one to another."""
