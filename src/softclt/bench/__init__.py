"""Tables of runs: suites of data sets and configurations, run side by side, line by line."""

from softclt.bench import families as families  # registers groups of data sets
