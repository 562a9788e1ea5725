"""Ranking: how high do the hits stand? i is a rank, h_i = 1 if its item is a hit, g_i the item's gain."""
