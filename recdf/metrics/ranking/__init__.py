"""Ranking: how high do the hits stand?"""
