"""Vocabularies small enough to reckon their ids by hand, in the form that a GGUF file's metadata has."""

from minfer.tokenization.encoders import byte_characters

CHARACTERS = byte_characters()


def byte_pairs(merges=("Ġ Ġ",), pre="gpt-2", special=("<|start|>", "<|endoftext|>"), **others):
    """A gpt2 vocabulary: the 256 bytes, then one token for each merge, then control tokens."""
    merged = [merge.replace(" ", "") for merge in merges]
    tokens = [*CHARACTERS, *merged, *special]
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": list(merges),
        "tokenizer.ggml.token_type": [1] * (256 + len(merged)) + [3] * len(special),
        "tokenizer.ggml.bos_token_id": len(tokens) - 2,
        "tokenizer.ggml.eos_token_id": len(tokens) - 1,
        **{f"tokenizer.ggml.{key}": value for key, value in others.items()},
    }


def sentence_piece(scored=(), user_defined=(), **others):
    """A llama vocabulary: <unk>, <s>, </s>, the 256 bytes, then tokens with scores, then user-defined ones."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    return {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [*tokens, *(token for token, _ in scored), *user_defined],
        "tokenizer.ggml.scores": [0.0] * len(tokens) + [score for _, score in scored] + [0.0] * len(user_defined),
        "tokenizer.ggml.token_type": [2, 3, 3] + [6] * 256 + [1] * len(scored) + [4] * len(user_defined),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        **{f"tokenizer.ggml.{key}": value for key, value in others.items()},
    }
