"""Explanations of the numbers: checks of the data, a comparison of conventions, tables of hits, exposure, positions."""
