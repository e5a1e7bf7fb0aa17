"""Search for the release of tract in which the outcome of a case differs from that in the previous release."""
