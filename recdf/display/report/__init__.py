"""One report file (extra `recdf[report]`): sections of records, and a page made of them."""
