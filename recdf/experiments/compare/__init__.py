"""Models and variants compared: paired tests, tests of two samples, tables of effects."""
