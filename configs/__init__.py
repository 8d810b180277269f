"""Configs as YAML files. This marker makes the folder travel in the wheel."""
