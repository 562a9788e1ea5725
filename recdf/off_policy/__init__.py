"""A log with propensities in, the value of a policy that did not run out.

`read_log` is the only module that sees the columns of a log. `estimators`, `influence`, `slates`, `bounded`,
`intervals` and `weights` compute with arrays, and the modules named after public functions make tidy tables of their
numbers.
"""
