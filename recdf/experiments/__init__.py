"""Per-user tables to decisions: join, health, compare, plan."""
