"""Tables of runs: suites of data sets and configurations, run side by side, line by line."""
