#!/usr/bin/env python3
"""export.py - writes the trained model as a GGUF file, version 3, matrices as Q8_0.

  export.py vocab.json OUT/model.pt greta-demo.gguf
"""

import argparse
import struct

import numpy as np
import torch

from tokenizer import BOS, EOS, load

ALIGNMENT = 32
UINT32, FLOAT32, BOOL, STRING, ARRAY, INT32 = 4, 6, 7, 8, 9, 5  # GGUF value types
TYPE_F32, TYPE_Q8_0 = 0, 8
FILE_TYPE_MOSTLY_Q8_0 = 7


def pack_string(text):
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def pack_array(kind, values):
    if kind == STRING:
        body = b"".join(map(pack_string, values))
    else:
        body = np.array(values, dtype={FLOAT32: "<f4", INT32: "<i4"}[kind]).tobytes()
    return struct.pack("<IQ", kind, len(values)) + body


def pack_value(kind, value):
    if kind == STRING:
        return pack_string(value)
    if kind == ARRAY:
        return pack_array(*value)
    return struct.pack({UINT32: "<I", FLOAT32: "<f", BOOL: "<?"}[kind], value)


def metadata(config, vocab):
    heads = config["head_count"]
    return [
        ("general.architecture", STRING, "llama"),
        ("general.name", STRING, "greta demo"),
        ("general.description", STRING, "A small Llama that writes short stories in simple English"),
        ("general.author", STRING, "greta"),
        ("general.license", STRING, "mit"),
        ("general.size_label", STRING, "1.8M"),
        ("general.languages", ARRAY, (STRING, ["en"])),
        ("general.tags", ARRAY, (STRING, ["text-generation"])),
        ("general.alignment", UINT32, ALIGNMENT),
        ("general.file_type", UINT32, FILE_TYPE_MOSTLY_Q8_0),
        ("general.quantization_version", UINT32, 2),
        ("llama.vocab_size", UINT32, config["vocab_size"]),
        ("llama.context_length", UINT32, config["context_length"]),
        ("llama.embedding_length", UINT32, config["embedding_length"]),
        ("llama.block_count", UINT32, config["block_count"]),
        ("llama.feed_forward_length", UINT32, config["feed_forward_length"]),
        ("llama.attention.head_count", UINT32, heads),
        ("llama.attention.head_count_kv", UINT32, config["head_count_kv"]),
        ("llama.attention.layer_norm_rms_epsilon", FLOAT32, config["rms_epsilon"]),
        ("llama.rope.dimension_count", UINT32, config["embedding_length"] // heads),
        ("llama.rope.freq_base", FLOAT32, config["rope_base"]),
        ("tokenizer.ggml.model", STRING, "llama"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, vocab["tokens"])),
        ("tokenizer.ggml.scores", ARRAY, (FLOAT32, vocab["scores"])),
        ("tokenizer.ggml.token_type", ARRAY, (INT32, vocab["types"])),
        ("tokenizer.ggml.unknown_token_id", UINT32, 0),
        ("tokenizer.ggml.bos_token_id", UINT32, BOS),
        ("tokenizer.ggml.eos_token_id", UINT32, EOS),
        ("tokenizer.ggml.add_bos_token", BOOL, True),
        ("tokenizer.ggml.add_eos_token", BOOL, False),
        ("tokenizer.ggml.add_space_prefix", BOOL, True),
    ]


def quantize_q8_0(matrix):
    """Blocks of 32 along a row: a half-precision scale and 32 signed bytes."""
    blocks = matrix.astype(np.float32).reshape(-1, 32)
    scale = np.abs(blocks).max(1, keepdims=True) / np.float32(127)
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    scaled = blocks * inverse
    quants = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8)
    packed = np.empty(len(blocks), dtype=[("scale", "<f2"), ("quants", "i1", 32)])
    packed["scale"], packed["quants"] = scale[:, 0], quants
    return packed.tobytes()


def tensor_of(name, array):
    """name, dimensions (fastest first), type, bytes"""
    dims = list(reversed(array.shape))
    if array.ndim == 1:
        return name, dims, TYPE_F32, array.astype("<f4").tobytes()
    return name, dims, TYPE_Q8_0, quantize_q8_0(array)


def padded(data):
    return data + b"\0" * (-len(data) % ALIGNMENT)


def gguf_bytes(config, vocab, arrays):
    pairs = metadata(config, vocab)
    tensors = [tensor_of(name, array) for name, array in arrays.items()]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    for key, kind, value in pairs:
        head += pack_string(key) + struct.pack("<I", kind) + pack_value(kind, value)
    offset = 0
    for name, dims, kind, data in tensors:
        head += pack_string(name) + struct.pack("<I%dQIQ" % len(dims), len(dims), *dims, kind, offset)
        offset += len(padded(data))
    return padded(head) + b"".join(padded(data) for _, _, _, data in tensors)


def main():
    parser = argparse.ArgumentParser(description="write the demo model as GGUF")
    parser.add_argument("vocab")
    parser.add_argument("checkpoint")
    parser.add_argument("output")
    args = parser.parse_args()
    state = torch.load(args.checkpoint, map_location="cpu")
    arrays = {name: value.numpy() for name, value in state["model"].items()}
    data = gguf_bytes(state["config"], load(args.vocab), arrays)
    with open(args.output, "wb") as file:
        file.write(data)
    print("step %d, %d parameters, %d bytes"
          % (state["step"], sum(a.size for a in arrays.values()), len(data)))


if __name__ == "__main__":
    main()
