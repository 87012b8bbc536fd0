#!/usr/bin/env python3
"""tokenizer.py - the demo model's SentencePiece-style vocabulary: training and encoding.

Training is byte-pair encoding inside words: the pair of neighbours that occurs most often becomes a
piece, and its score is minus its rank. Encoding is what Llama's tokenizer does: join the two
neighbours whose union is a piece with the highest score, the leftmost of equals, until none is left.
Both orders are the same, so the model is trained on exactly the segmentation an engine computes.

  tokenizer.py vocab.json               trains on the corpus and writes the vocabulary
"""

import argparse
import heapq
import json
import re
from collections import Counter

from corpus import story

SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6  # GGUF token types
BOS, EOS = 1, 2
FIRST_BYTE = 3
CHARACTERS = ("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
              ".,!?\"':;-()" + SPACE)

# No piece spans two chunks, so a text may be encoded chunk by chunk.
CHUNK = re.compile(SPACE + "?[A-Za-z]+|" + SPACE + "?[^A-Za-z" + SPACE + "]|" + SPACE, re.DOTALL)


def to_symbols(text):
    return (SPACE + text.replace(" ", SPACE)) if text else ""


def count_pairs(chunks):
    pairs = Counter()
    for symbols, count in chunks.items():
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += count
    return pairs


def join_pair(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if symbols[i:i + 2] == pair:
            out.append(pair[0] + pair[1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return tuple(out)


def train_pieces(texts, wanted):
    """The `wanted` most useful pieces of more than one character, best first."""
    chunks = Counter()
    for text in texts:
        chunks.update(CHUNK.findall(to_symbols(text)))
    chunks = {tuple(chunk): count for chunk, count in chunks.items()}
    pieces = []
    while len(pieces) < wanted:
        pairs = count_pairs(chunks)
        pair = max(pairs, key=lambda p: (pairs[p], p))
        if pair[0] + pair[1] not in pieces:
            pieces.append(pair[0] + pair[1])
        joined = Counter()
        for symbols, count in chunks.items():
            joined[join_pair(symbols, pair)] += count
        chunks = joined
    return pieces


def train(texts, size):
    """A vocabulary of `size` tokens: specials, bytes, learned pieces, characters."""
    pieces = train_pieces(texts, size - FIRST_BYTE - 256 - len(CHARACTERS))
    learned = pieces + list(CHARACTERS)
    return {
        "tokens": ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)] + learned,
        "scores": [0.0] * (FIRST_BYTE + 256) + [-float(rank) for rank in range(len(learned))],
        "types": [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(learned),
    }


class Tokenizer:
    def __init__(self, vocab):
        self.tokens = vocab["tokens"]
        self.scores = vocab["scores"]
        self.ids = {t: i for i, t in enumerate(self.tokens) if vocab["types"][i] == NORMAL}
        self.cache = {}

    def join(self, symbols):
        """Joins neighbours in the order of their scores. Dead symbols are left as None."""
        symbols = list(symbols)
        left = list(range(-1, len(symbols) - 1))
        right = list(range(1, len(symbols) + 1))
        queue = []

        def offer(i, j):
            if i >= 0 and j < len(symbols):
                union = symbols[i] + symbols[j]
                if union in self.ids:
                    heapq.heappush(queue, (-self.scores[self.ids[union]], i, j, union))

        for i in range(len(symbols) - 1):
            offer(i, i + 1)
        while queue:
            _, i, j, union = heapq.heappop(queue)
            if symbols[i] is None or symbols[j] is None or symbols[i] + symbols[j] != union:
                continue  # one of the two has been joined with another since
            symbols[i], symbols[j] = union, None
            right[i] = right[j]
            if right[j] < len(symbols):
                left[right[j]] = i
            offer(left[i], i)
            offer(i, right[i])
        return [s for s in symbols if s is not None]

    def to_ids(self, symbols):
        out = []
        for symbol in symbols:
            if symbol in self.ids:
                out.append(self.ids[symbol])
            else:
                out.extend(FIRST_BYTE + byte for byte in symbol.encode("utf-8"))
        return out

    def encode_whole(self, text):
        """The definition: one queue for the whole text."""
        return self.to_ids(self.join(to_symbols(text)))

    def encode(self, text):
        """The same, faster: chunk by chunk with a memory."""
        out = []
        for chunk in CHUNK.findall(to_symbols(text)):
            if chunk not in self.cache:
                self.cache[chunk] = self.to_ids(self.join(chunk))
            out.extend(self.cache[chunk])
        return out

    def decode(self, ids):
        data = b""
        for i in ids:
            if FIRST_BYTE <= i < FIRST_BYTE + 256:
                data += bytes([i - FIRST_BYTE])
            elif i >= FIRST_BYTE + 256:
                data += self.tokens[i].replace(SPACE, " ").encode("utf-8")
        return data.decode("utf-8", "replace").removeprefix(" ")


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description="train the vocabulary of the demo model")
    parser.add_argument("output")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--stories", type=int, default=40000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    texts = [story(args.seed, i)[0] for i in range(args.stories)]
    vocab = train(texts, args.size)
    with open(args.output, "w", encoding="utf-8") as file:
        json.dump(vocab, file, ensure_ascii=False, indent=0)
    tokenizer = Tokenizer(vocab)
    sample = texts[:2000]
    assert all(tokenizer.encode(t) == tokenizer.encode_whole(t) for t in sample)
    assert all(tokenizer.decode(tokenizer.encode(t)) == t for t in sample)
    tokens = sum(len(tokenizer.encode(t)) for t in sample)
    print("%d tokens; %.2f characters a token; %.1f tokens a story"
          % (len(vocab["tokens"]), sum(map(len, sample)) / tokens, tokens / len(sample)))


if __name__ == "__main__":
    main()
