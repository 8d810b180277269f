"""Personas: opposing stances to deliberate from, as data files with a loader."""

from .loader import PersonaSet, load_personas, packaged_personas
from .persona import Persona, PersonaPair

__all__ = ["Persona", "PersonaPair", "PersonaSet", "load_personas", "packaged_personas"]
