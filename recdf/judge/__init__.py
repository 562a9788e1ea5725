"""What every comparison shares: users, aggregates, effects, cautions, and the verdict."""
