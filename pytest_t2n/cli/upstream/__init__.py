"""Commands that look into a failing case: which release, the smallest graph, its format upstream, its times."""
