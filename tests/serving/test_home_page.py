"""The page of a server in a real browser: a CSV becomes a map, alarms and neighbours."""
