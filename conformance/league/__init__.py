"""The league: exporters side by side in the suites, on the newest release of each line of tract."""
