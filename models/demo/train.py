#!/usr/bin/env python3
"""train.py - trains the demo model on the generated corpus.

  train.py vocab.json OUT/              leaves OUT/model.pt and OUT/loss.csv; goes on where it stopped

A row of a batch begins with <s> and holds whole stories, each between <s> and </s>, cut at the end.
Most steps use short rows; the last ones use the full context.
"""

import argparse
import array
import math
import os
import time

import numpy as np
import torch
import torch.nn.functional as F

from corpus import story
from model import CONFIG, Llama
from tokenizer import BOS, EOS, Tokenizer, load

TRAIN_SEED, CHECK_SEED = 1, 2
STORIES, CHECK_STORIES = 160000, 500
BATCH_TOKENS = 2048
SHORT_ROW, LONG_ROW, LONG_SHARE = 256, 512, 0.1
PEAK_RATE, LAST_RATE, WARMUP = 2e-3, 4e-5, 200


def tokenized_stories(tokenizer, seed, count):
    """All stories of a seed in one array, and where each begins."""
    tokens, starts = array.array("H"), array.array("L")
    for number in range(count):
        starts.append(len(tokens))
        tokens.extend([BOS] + tokenizer.encode(story(seed, number)[0]) + [EOS])
    return np.array(tokens, dtype=np.uint16), np.array(starts, dtype=np.int64)


def cached_stories(tokenizer, directory):
    path = os.path.join(directory, "corpus.npz")
    if not os.path.exists(path):
        tokens, starts = tokenized_stories(tokenizer, TRAIN_SEED, STORIES)
        np.savez(path, tokens=tokens, starts=starts)
    data = np.load(path)
    return data["tokens"], data["starts"]


def rows(tokens, starts, picks, length):
    """[len(picks), length + 1]; a row that runs over the end of the corpus is taken from before it."""
    first = np.minimum(starts[picks], len(tokens) - length - 1)
    grid = first[:, None] + np.arange(length + 1)[None, :]
    return torch.from_numpy(tokens[grid].astype(np.int64))


def loss_of(model, batch):
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


def check_loss(model, tokens, starts, length=SHORT_ROW):
    """Mean loss over the first rows of the stories that were kept apart."""
    with torch.no_grad():
        picks = np.arange(160).reshape(-1, 16)
        return float(np.mean([loss_of(model, rows(tokens, starts, p, length)).item() for p in picks]))


def rate_at(step, steps):
    if step < WARMUP:
        return PEAK_RATE * (step + 1) / WARMUP
    part = (step - WARMUP) / max(1, steps - WARMUP)
    return LAST_RATE + 0.5 * (PEAK_RATE - LAST_RATE) * (1 + math.cos(math.pi * part))


def make_optimizer(model):
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.95), eps=1e-8)


def save(path, model, optimizer, step):
    state = {"config": CONFIG, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def train(args):
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    os.makedirs(args.output, exist_ok=True)
    tokenizer = Tokenizer(load(args.vocab))
    tokens, starts = cached_stories(tokenizer, args.output)
    check = tokenized_stories(tokenizer, CHECK_SEED, CHECK_STORIES)
    model = Llama(CONFIG)
    optimizer = make_optimizer(model)
    path, log = os.path.join(args.output, "model.pt"), os.path.join(args.output, "loss.csv")
    first = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    else:
        with open(log, "w") as file:
            file.write("step,tokens,train_loss,check_loss,rate,seconds\n")
    print("%d parameters, %d training tokens, from step %d"
          % (sum(p.numel() for p in model.parameters()), len(tokens), first), flush=True)
    order = np.random.default_rng(1).permutation(len(starts))
    run_steps(args, model, optimizer, (tokens, starts, order), check, first, path, log)


def run_steps(args, model, optimizer, corpus, check, first, path, log):
    tokens, starts, order = corpus
    total, begin = 0.0, time.time()
    for step in range(first, args.steps):
        length = LONG_ROW if step >= args.steps * (1 - LONG_SHARE) else SHORT_ROW
        count = BATCH_TOKENS // length
        picks = order[(np.arange(count) + step * (BATCH_TOKENS // SHORT_ROW)) % len(order)]
        rate = rate_at(step, args.steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = loss_of(model, rows(tokens, starts, picks, length))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
        done = step + 1
        if done % args.every == 0 or done == args.steps:
            line = "%d,%d,%.4f,%.4f,%.6f,%.0f" % (
                done, done * BATCH_TOKENS, total / ((done - 1) % args.every + 1),
                check_loss(model, *check), rate, time.time() - begin)
            print(line, flush=True)
            with open(log, "a") as file:
                file.write(line + "\n")
            save(path, model, optimizer, done)
            total = 0.0


def main():
    parser = argparse.ArgumentParser(description="train the demo model")
    parser.add_argument("vocab")
    parser.add_argument("output")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--every", type=int, default=250, help="steps between checkpoints")
    parser.add_argument("--threads", type=int, default=1)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
