#!/usr/bin/env python3
"""check.py - evaluates the demo model from the GGUF file alone, in double precision.

It shares no code with the training or the export, so that it can find their mistakes.

  check.py greta-demo.gguf                            greedy and sampled text for some prompts
  check.py greta-demo.gguf --prompt "The cat"         one prompt
  check.py greta-demo.gguf --vocab V --checkpoint C   also compares logits with PyTorch
"""

import argparse
import struct

import numpy as np

PROMPTS = ["Once upon a time", "Anna was a", "The fox", "One day, Greta", "\"Good morning,", "The capital of France",
           "Hello, my name is", "In winter,", "The king"]
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
Q8_0_BLOCK = np.dtype([("scale", "<f2"), ("quants", "i1", 32)])


class Gguf:
    """Metadata in .meta, tensors as float64 arrays in .tensors."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 0
        assert self.data[:4] == b"GGUF"
        self.at = 4
        version, tensors, pairs = self.take("I"), self.take("Q"), self.take("Q")
        assert version == 3
        self.meta = {}
        for _ in range(pairs):
            key = self.string()
            self.meta[key] = self.value(self.take("I"))
        infos = [self.tensor_info() for _ in range(tensors)]
        base = self.at + -self.at % self.meta.get("general.alignment", 32)
        self.tensors = {name: self.tensor(dims, kind, base + offset) for name, dims, kind, offset in infos}

    def take(self, code):
        value = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        length = self.take("Q")
        self.at += length
        return self.data[self.at - length:self.at].decode("utf-8")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind, count = self.take("I"), self.take("Q")
            return [self.value(kind) for _ in range(count)]
        return self.take(SCALARS[kind])

    def tensor_info(self):
        name = self.string()
        dims = [self.take("Q") for _ in range(self.take("I"))]
        return name, dims, self.take("I"), self.take("Q")

    def tensor(self, dims, kind, offset):
        count = int(np.prod(dims))
        if kind == 0:
            flat = np.frombuffer(self.data, "<f4", count, offset).astype(np.float64)
        else:
            assert kind == 8
            blocks = np.frombuffer(self.data, Q8_0_BLOCK, count // 32, offset)
            flat = blocks["scale"].astype(np.float64)[:, None] * blocks["quants"]
        return flat.reshape(dims[::-1])


class Vocabulary:
    def __init__(self, meta):
        self.tokens = meta["tokenizer.ggml.tokens"]
        self.scores = meta["tokenizer.ggml.scores"]
        self.types = meta["tokenizer.ggml.token_type"]
        self.ids = {token: i for i, token in enumerate(self.tokens)}

    def encode(self, text):
        """Joins the best pair of neighbours, again and again, by looking at all of them."""
        parts = list(" ".join(["", text]).replace(" ", "\u2581"))
        while True:
            best = None
            for i in range(len(parts) - 1):
                token = self.ids.get(parts[i] + parts[i + 1])
                if token is not None and (best is None or self.scores[token] > best[0]):
                    best = self.scores[token], i
            if best is None:
                break
            parts[best[1]:best[1] + 2] = [parts[best[1]] + parts[best[1] + 1]]
        out = [1]
        for part in parts:
            out += [self.ids[part]] if part in self.ids else [self.ids["<0x%02X>" % b] for b in part.encode()]
        return out

    def decode(self, ids):
        data = b""
        for i in ids:
            if self.types[i] == 6:
                data += bytes([int(self.tokens[i][3:5], 16)])
            elif self.types[i] == 1:
                data += self.tokens[i].replace("\u2581", " ").encode()
        return data.decode("utf-8", "replace")


class Evaluator:
    """One token at a time with a key/value cache, everything in float64."""

    def __init__(self, gguf):
        meta, self.weights = gguf.meta, gguf.tensors
        self.layers = meta["llama.block_count"]
        self.heads = meta["llama.attention.head_count"]
        self.kv_heads = meta["llama.attention.head_count_kv"]
        self.size = meta["llama.embedding_length"] // self.heads
        self.epsilon = meta["llama.attention.layer_norm_rms_epsilon"]
        self.frequency = meta["llama.rope.freq_base"] ** (-np.arange(0, self.size, 2) / self.size)
        self.reset()

    def reset(self):
        self.cache = [([], []) for _ in range(self.layers)]

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x) + self.epsilon) * self.weights[name + ".weight"]

    def rotate(self, x, position):
        """x: [heads, size] as complex numbers turned by position * frequency"""
        pairs = x.reshape(len(x), -1, 2)
        turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * position * self.frequency)
        return np.stack([turned.real, turned.imag], -1).reshape(x.shape)

    def attention(self, layer, x):
        def project(kind):
            return (self.weights["blk.%d.attn_%s.weight" % (layer, kind)] @ x).reshape(-1, self.size)
        keys, values = self.cache[layer]
        position = len(keys)
        query = self.rotate(project("q"), position)
        keys.append(self.rotate(project("k"), position))
        values.append(project("v"))
        k, v = np.array(keys), np.array(values)  # [positions, kv_heads, size]
        out = []
        for head in range(self.heads):
            group = head // (self.heads // self.kv_heads)
            score = k[:, group] @ query[head] / np.sqrt(self.size)
            share = np.exp(score - score.max())
            out.append(share / share.sum() @ v[:, group])
        return self.weights["blk.%d.attn_output.weight" % layer] @ np.concatenate(out)

    def logits(self, token):
        x = self.weights["token_embd.weight"][token]
        for layer in range(self.layers):
            name = "blk.%d." % layer
            x = x + self.attention(layer, self.norm(x, name + "attn_norm"))
            h = self.norm(x, name + "ffn_norm")
            gate = self.weights[name + "ffn_gate.weight"] @ h
            gate = gate / (1 + np.exp(-gate)) * (self.weights[name + "ffn_up.weight"] @ h)
            x = x + self.weights[name + "ffn_down.weight"] @ gate
        output = self.weights.get("output.weight", self.weights["token_embd.weight"])
        return output @ self.norm(x, "output_norm")


def generate(evaluator, vocabulary, prompt, count, temperature=0.0, seed=1):
    rng = np.random.default_rng(seed)
    evaluator.reset()
    ids = vocabulary.encode(prompt) if prompt is not None else [1]
    for token in ids:
        logits = evaluator.logits(token)
    for _ in range(count):
        if temperature == 0:
            token = int(np.argmax(logits))
        else:
            share = np.exp((logits - logits.max()) / temperature)
            token = int(rng.choice(len(share), p=share / share.sum()))
        if token == 2:
            break
        ids.append(token)
        logits = evaluator.logits(token)
    return ids


def compare(evaluator, vocabulary, args):
    """Logits of the file against PyTorch with the weights before and after quantisation."""
    import torch
    from model import Llama
    from tokenizer import Tokenizer, load
    text = "One day, Greta found a small key under the bed. \"What is it for?\" she asked."
    ids = vocabulary.encode(text)
    assert ids[1:] == Tokenizer(load(args.vocab)).encode(text)
    state = torch.load(args.checkpoint, map_location="cpu")
    evaluator.reset()
    mine = np.array([evaluator.logits(token) for token in ids])
    model = Llama(state["config"])
    for name, weights in (("before", state["model"]), ("after", evaluator.weights)):
        weights = {key: torch.as_tensor(value) for key, value in weights.items()}
        model.load_state_dict(weights)
        with torch.no_grad():
            theirs = model.double()(torch.tensor([ids]))[0].numpy()
        print("PyTorch %s quantisation: mean |difference| %.2e, %.4f%% of the standard deviation; same choice %d of %d"
              % (name, np.abs(mine - theirs).mean(), 100 * np.abs(mine - theirs).mean() / theirs.std(),
                 (mine.argmax(1) == theirs.argmax(1)).sum(), len(ids)))


def main():
    parser = argparse.ArgumentParser(description="evaluate the demo model")
    parser.add_argument("gguf")
    parser.add_argument("--prompt", action="append")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--vocab")
    parser.add_argument("--checkpoint")
    args = parser.parse_args()
    gguf = Gguf(args.gguf)
    evaluator, vocabulary = Evaluator(gguf), Vocabulary(gguf.meta)
    if args.checkpoint:
        compare(evaluator, vocabulary, args)
    for prompt in args.prompt or PROMPTS:
        ids = generate(evaluator, vocabulary, prompt, args.count)
        print("greedy: %s\n" % vocabulary.decode(ids).strip())
        for seed in range(1, args.samples + 1):
            ids = generate(evaluator, vocabulary, prompt, args.count, args.temperature, seed)
            print("seed %d: %s\n" % (seed, vocabulary.decode(ids).strip()))


if __name__ == "__main__":
    main()
