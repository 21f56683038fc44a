"""Continuous control with delayed reward."""
