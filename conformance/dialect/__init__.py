"""The dialect's suite: every operator of tract's NNEF, in chosen releases, against its definition."""
