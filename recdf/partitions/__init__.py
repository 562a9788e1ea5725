"""Evaluate a population in parts: each part is evaluated alone, and the merged results equal those
of the whole."""
