"""model.py - the Llama architecture in PyTorch, in the layout GGUF's arch "llama" expects.

Shapes: B sequences, T tokens, D width, H heads, K key/value heads, S head size (D = H * S).
RoPE turns neighbouring pairs (0,1), (2,3), ...: the weights need no permutation on export.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

CONFIG = {
    "vocab_size": 1024,
    "context_length": 512,
    "embedding_length": 256,
    "block_count": 4,
    "feed_forward_length": 256,
    "head_count": 4,
    "head_count_kv": 2,
    "rms_epsilon": 1e-5,
    "rope_base": 10000.0,
}


class RmsNorm(nn.Module):
    def __init__(self, width, epsilon):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def rope_table(config):
    """cos and sin, each [context, S/2]"""
    size = config["embedding_length"] // config["head_count"]
    frequency = config["rope_base"] ** (-torch.arange(0, size, 2).double() / size)
    angle = torch.outer(torch.arange(config["context_length"]).double(), frequency)
    return angle.cos().float(), angle.sin().float()


def rotate(x, cos, sin):
    """x: [B, T, heads, S]; cos, sin: [T, S/2]"""
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, hidden = c["embedding_length"], c["feed_forward_length"]
        self.heads, self.kv_heads = c["head_count"], c["head_count_kv"]
        self.size = width // self.heads
        self.attn_norm = RmsNorm(width, c["rms_epsilon"])
        self.attn_q = nn.Linear(width, width, bias=False)
        self.attn_k = nn.Linear(width, self.kv_heads * self.size, bias=False)
        self.attn_v = nn.Linear(width, self.kv_heads * self.size, bias=False)
        self.attn_output = nn.Linear(width, width, bias=False)
        self.ffn_norm = RmsNorm(width, c["rms_epsilon"])
        self.ffn_gate = nn.Linear(width, hidden, bias=False)
        self.ffn_up = nn.Linear(width, hidden, bias=False)
        self.ffn_down = nn.Linear(hidden, width, bias=False)

    def attention(self, x, cos, sin, mask):
        b, t, _ = x.shape
        q = rotate(self.attn_q(x).view(b, t, self.heads, self.size), cos, sin).transpose(1, 2)
        k = rotate(self.attn_k(x).view(b, t, self.kv_heads, self.size), cos, sin).transpose(1, 2)
        v = self.attn_v(x).view(b, t, self.kv_heads, self.size).transpose(1, 2)
        group = self.heads // self.kv_heads
        # The heads of a group share one key head: stack their queries instead of copying the keys.
        q = q.reshape(b, self.kv_heads, group * t, self.size) * (1.0 / math.sqrt(self.size))
        scores = (q @ k.transpose(2, 3)).view(b, self.kv_heads, group, t, t) + mask
        mixed = scores.softmax(-1).view(b, self.kv_heads, group * t, t) @ v
        mixed = mixed.view(b, self.heads, t, self.size).transpose(1, 2)
        return self.attn_output(mixed.reshape(b, t, -1))

    def forward(self, x, cos, sin, mask):
        x = x + self.attention(self.attn_norm(x), cos, sin, mask)
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Llama(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.token_embd = nn.Embedding(config["vocab_size"], config["embedding_length"])
        self.blk = nn.ModuleList(Block(config) for _ in range(config["block_count"]))
        self.output_norm = RmsNorm(config["embedding_length"], config["rms_epsilon"])
        cos, sin = rope_table(config)
        length = config["context_length"]
        mask = torch.full((length, length), float("-inf")).triu(1)
        for name, value in (("cos", cos), ("sin", sin), ("mask", mask)):
            self.register_buffer(name, value, persistent=False)
        self.reset(config)

    def reset(self, config):
        for name, p in self.named_parameters():
            if p.dim() == 2:
                last = name.endswith(("attn_output.weight", "ffn_down.weight"))
                std = 0.04 / math.sqrt(2 * config["block_count"]) if last else 0.04
                nn.init.normal_(p, std=std)

    def forward(self, tokens):
        """[B, T] tokens to [B, T, vocabulary] logits; the output layer is the embedding's twin."""
        t = tokens.shape[1]
        x = self.token_embd(tokens)
        for block in self.blk:
            x = block(x, self.cos[:t], self.sin[:t], self.mask[:t, :t])
        return F.linear(self.output_norm(x), self.token_embd.weight)
