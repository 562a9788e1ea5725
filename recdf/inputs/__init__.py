"""The arguments of a call, read and checked once: frames, ids, options, conventions.

Only this package reads labels, that is column names and id values. The other packages work on
arrays of codes.
"""
