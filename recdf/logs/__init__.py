"""From raw logs to the two tables: impressions, attribution, sessions, time, and the checks of a log."""
