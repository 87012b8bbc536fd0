#!/usr/bin/env python3
"""score.py - how well the demo model writes, in numbers.

It samples stories from the GGUF file and compares them with stories of the corpus that were not
used in training: are the words known, has every run of three words been seen, does the story end,
is it new. Names count as one word, so that a sentence is not new just because of its name.

  score.py greta-demo.gguf --stories 100
"""

import argparse
import re

import words
from check import Evaluator, Gguf, Vocabulary, generate
from corpus import story
from train import STORIES, TRAIN_SEED

NAMES = set(words.GIRLS) | set(words.BOYS) | {
    head + tail for head in words.NAME_HEADS for tail in words.NAME_TAILS_GIRL + words.NAME_TAILS_BOY}


def sentence_words(sentence):
    return ["NAME" if w in NAMES else w.lower() for w in re.findall(r"\w+|[^\w\s]", sentence)]


def sentences(text):
    return [sentence_words(s) for s in re.findall(r'[^.!?]+[.!?]"?|[^.!?]+$', text)]


def triples(sentence):
    padded = ["^"] + sentence + ["$"]
    return zip(padded, padded[1:], padded[2:])


def read_corpus():
    """Known words, known triples and all texts of the training corpus."""
    known, seen, texts = set(), set(), set()
    for number in range(STORIES):
        text = story(TRAIN_SEED, number)[0]
        texts.add(text)
        for sentence in sentences(text):
            known.update(sentence)
            seen.update(triples(sentence))
    return known, seen, texts


def judge(texts, corpus):
    known, seen, told = corpus
    all_sentences = [s for text in texts for s in sentences(text)]
    all_words = [w for s in all_sentences for w in s]
    print("words known          %.2f%%" % (100 * sum(w in known for w in all_words) / len(all_words)))
    print("sentences plausible  %.1f%%" % (100 * sum(all(t in seen for t in triples(s)) for s in all_sentences)
                                            / len(all_sentences)))
    print("stories not in the training text  %.1f%%" % (100 * sum(t not in told for t in texts) / len(texts)))


def main():
    parser = argparse.ArgumentParser(description="judge the stories of the demo model")
    parser.add_argument("gguf")
    parser.add_argument("--stories", type=int, default=100)
    parser.add_argument("--temperature", type=float, default=0.8)
    args = parser.parse_args()
    corpus = read_corpus()
    print("fresh stories of the generator:")
    judge([story(TRAIN_SEED + 100, i)[0] for i in range(args.stories)], corpus)
    gguf = Gguf(args.gguf)
    evaluator, vocabulary = Evaluator(gguf), Vocabulary(gguf.meta)
    texts, ended = [], 0
    for seed in range(args.stories):
        ids = generate(evaluator, vocabulary, None, 300, args.temperature, seed)
        ended += len(ids) < 300
        texts.append(vocabulary.decode(ids).strip())
    print("stories of the model, temperature %.1f:" % args.temperature)
    judge(texts, corpus)
    print("stories that end     %.1f%%" % (100 * ended / len(texts)))


if __name__ == "__main__":
    main()
