"""Models behind OpenAI-compatible servers: asked at scale, paid for, and never trusted."""

from .client import RemoteModel
from .ledger import Ledger
from .prices import Prices, load_prices
from .records import Ask, Failure, Reply, Usage

__all__ = ["Ask", "Failure", "Ledger", "Prices", "RemoteModel", "Reply", "Usage", "load_prices"]
