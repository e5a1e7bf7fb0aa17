"""Commands that analyse a failing case: the release, the smallest graph, an upstream issue, its times."""
