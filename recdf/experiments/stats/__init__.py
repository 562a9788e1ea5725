"""Statistics on arrays: numbers in and out, no column names and no metrics."""
