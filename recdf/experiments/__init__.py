"""Per-user tables to decisions: join, compare, decide, plan.

The modules beside these four folders read the rows of an experiment, once for all of them.
"""
