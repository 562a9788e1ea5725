"""A log with propensities in, the value of a policy that did not run out.

`read_log` is the only module that sees the columns of a log, and `weighted_rows` computes with
arrays. The other modules make tidy tables of their numbers.
"""
