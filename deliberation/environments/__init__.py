"""Environments: the rules of one kind of dialogue."""
