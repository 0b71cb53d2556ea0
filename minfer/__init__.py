"""minfer: a small LLM inference engine for GGUF weights, whose every operation says what it is."""

from .model import Engine, load

__version__ = "0.1.0"
__all__ = ["Engine", "load"]
