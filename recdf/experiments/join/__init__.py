"""Per-user tables joined to who was in which variant."""
