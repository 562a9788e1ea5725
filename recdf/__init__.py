"""recdf: evaluate logged recommendations in pandas."""

__version__ = "0.1.0"
