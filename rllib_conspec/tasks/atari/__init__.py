"""Atari games in colour, with or without delayed reward."""
