"""From a GGUF file's own vocabulary to token ids and back, with llama.cpp's ids as the standard."""
