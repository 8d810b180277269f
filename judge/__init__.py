"""Judges: agreement, collective agency, pairwise preference."""
