"""A population in parts: each part is evaluated alone, and merged they equal the whole."""
