"""minfer: a small LLM inference engine for GGUF weights, whose every operation says what it is."""

__version__ = "0.1.0"
