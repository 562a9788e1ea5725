"""How many users an experiment needs."""
