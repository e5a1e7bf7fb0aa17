"""Find the release of tract in which a case ends differently from the one before it."""
