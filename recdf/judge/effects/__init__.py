"""Effects: what each kind of test needs of the units, and what it makes of them."""
