"""pytest plugin; see `pytest_t2n.plugin`. Empty on purpose: importing it must cost nothing."""
