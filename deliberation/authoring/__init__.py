"""New dilemmas and persona pairs from a model: asked for by quota, checked, kept as they come."""

from .files import AuthoringOptions, author_dilemmas, author_personas
from .quotas import Quota, read_quotas
from .work import AuthoringReport, WorkListener

__all__ = [
    "AuthoringOptions",
    "AuthoringReport",
    "Quota",
    "WorkListener",
    "author_dilemmas",
    "author_personas",
    "read_quotas",
]
