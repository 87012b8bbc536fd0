#!/usr/bin/env python3
"""corpus.py - writes the training text of the demo model.

Stories are drawn from the templates of plots.py with the words of words.py. Nothing here comes from
other people's text. The same seed gives the same stories, whatever the Python version, because the
only source of chance is the small generator below.

  corpus.py --stories 5 --seed 1        prints stories, separated by blank lines
  corpus.py --stories 2000 --stats      prints how varied they are
"""

import argparse
import math
import re
from types import SimpleNamespace

import words
from plots import PLOTS, SHARED


class Chance:
    """splitmix64, and a count of the nats spent: an upper bound on the entropy of the text."""

    MASK = (1 << 64) - 1

    def __init__(self, seed):
        self.state = seed & self.MASK
        self.nats = 0.0

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & self.MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & self.MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & self.MASK
        self.nats += math.log(n)
        return ((z ^ (z >> 31)) * n) >> 64

    def pick(self, items):
        return items[self.below(len(items))]


class Slot(SimpleNamespace):
    """What a template calls by a letter: a person, an animal, a thing. str() is its name."""

    def __str__(self):
        return self.name


def fields(row):
    """A tuple of strings as a slot: <x> is the first field, <x.2> the third."""
    slot = Slot(name=row[0])
    for i, value in enumerate(row):
        setattr(slot, str(i), value)
    return slot


def person(name, gender, kid):
    he, him, his = ("she", "her", "her") if gender == "f" else ("he", "him", "his")
    return Slot(name=name, he=he, him=him, his=his, himself=him + "self", kid=kid, gender=gender)


class Cast:
    """Draws the slots of one story. Each method is a slot kind of plots.py."""

    def __init__(self, chance):
        self.chance = chance
        self.taken = set()

    def fresh(self, items, key=lambda item: item):
        while True:
            item = self.chance.pick(items)
            if key(item) not in self.taken:
                self.taken.add(key(item))
                return item

    def name(self, gender):
        if self.chance.below(8) == 0:
            tails = words.NAME_TAILS_GIRL if gender == "f" else words.NAME_TAILS_BOY
            name = self.chance.pick(words.NAME_HEADS) + self.chance.pick(tails)
            return name if name not in self.taken else self.name(gender)
        return self.fresh(words.GIRLS if gender == "f" else words.BOYS)

    def child(self, _):
        gender = self.chance.pick("fm")
        child = person(self.name(gender), gender, "girl" if gender == "f" else "boy")
        return child

    def friend(self, env):
        friend = self.child(env)
        env["A"].otherkid = friend.kid
        return friend

    def person(self, _):
        gender = self.chance.pick("fm")
        return person(self.name(gender), gender, "woman" if gender == "f" else "man")

    def family(self, _):
        relation, gender = self.fresh(words.FAMILY)
        slot = person(relation, gender, relation)
        slot.rel = relation
        return slot

    def elder(self, env):
        slot = self.family2(env)
        return slot if slot.rel not in ("sister", "brother") else self.elder(env)

    def family2(self, env):
        """A relative of A in the story itself: "her uncle"."""
        slot = self.family(env)
        slot.name = env["A"].his + " " + slot.rel
        return slot

    def ruler(self, _):
        rank, gender = self.chance.pick(words.RULERS)
        slot = person("the " + rank, gender, rank)
        slot.rank, slot.trait = rank, self.chance.pick(words.RULER_TRAITS)
        return slot

    def animal(self, _, table=words.ANIMALS):
        kind, home, food, traits, cried, moved, fact = self.fresh(table, lambda row: row[0])
        first = self.chance.below(2)
        return Slot(name="the " + kind, kind=kind, home=home, place=home.split(" ", 1)[1], food=food,
                    trait=traits[first], trait2=traits[1 - first], cried=cried, moved=moved, fact=fact)

    def little(self, env):
        return self.animal(env, [row for row in words.ANIMALS if row[0] in words.LITTLE_ANIMALS])

    def pet(self, env):
        return self.animal(env, [row for row in words.ANIMALS if row[0] in words.PETS])

    def land(self, env):
        return self.animal(env, [row for row in words.ANIMALS if row[0] not in words.SEA_ANIMALS])

    def sea(self, env):
        return self.animal(env, [row for row in words.ANIMALS if row[0] in words.SEA_ANIMALS])

    def toy(self, _, table=words.TOYS):
        noun, color = self.fresh(table), self.chance.pick(words.COLORS)
        return Slot(name=color + " " + noun, noun=noun, color=color)

    def small(self, env):
        return self.toy(env, [toy for toy in words.TOYS if toy not in words.BIG_TOYS])

    def gift(self, env):
        return self.toy(env, [toy for toy in words.TOYS if toy not in ("box", "key")])

    def fragile(self, env):
        return self.toy(env, [toy for toy in words.TOYS if toy in words.FRAGILE_TOYS])

    def dish(self, _):
        name, parts = self.chance.pick(words.DISHES)
        turn = self.chance.below(len(parts))
        a, b, c, d = parts[turn:] + parts[:turn]
        return Slot(name=name, a=a, b=b, c=c, d=d)

    def place(self, _):
        inside, towards, noun = self.chance.pick(words.PLACES)
        return Slot(name=noun, to=towards, **{"in": inside})

    def worker(self, _):
        return fields(self.fresh(words.WORKERS, lambda row: row[0]))

    def thing(self, env):
        slot = fields(self.fresh(words.THINGS, lambda row: row[0]))
        if "Tup" not in env:
            env["Tup"] = getattr(slot, "3").capitalize()
            setattr(slot, "3", "")
        return slot

    def capital(self, _):
        return fields(self.fresh(words.CAPITALS, lambda row: row[0]))

    def row(self, table):
        return fields(self.chance.pick(table))

    def word(self, table):
        return self.fresh(table)


# Kinds that are a plain list of strings (drawn without repetition) or of tuples.
WORD_KINDS = {"hiding": words.HIDING, "food": words.FOODS, "tool": words.TOOLS, "sight": words.SIGHTS}
ROW_KINDS = {"skill": words.SKILLS, "fear": words.FEARS, "vehicle": words.VEHICLES, "crop": words.CROPS,
             "noise": words.NOISES, "season": words.SEASONS, "game": words.GAMES}

# Slots any template may use without declaring them; drawn at first use, then fixed for the story.
IMPLIED = {
    "A": lambda cast, env: cast.child(env),
    "H": lambda cast, env: cast.family(env),
    "P": lambda cast, env: cast.little(env),
    "W": lambda cast, env: cast.worker(env),
    "place": lambda cast, env: cast.place(env),
    "game": lambda cast, env: cast.row(words.GAMES),
    "weather": lambda cast, env: cast.row(words.WEATHERS),
    "home": lambda cast, env: cast.word(words.HOMES),
    "hide": lambda cast, env: cast.word(words.HIDING),
    "food": lambda cast, env: cast.word(words.FOODS),
    "tool": lambda cast, env: cast.word(words.TOOLS),
    "trait": lambda cast, env: cast.chance.pick(words.CHILD_TRAITS),
    "color": lambda cast, env: cast.chance.pick(words.COLORS),
    "number": lambda cast, env: cast.chance.pick(words.NUMBERS),
    "digit": lambda cast, env: str(3 + cast.chance.below(10)),
    "day": lambda cast, env: cast.chance.pick(words.DAYS),
    "cup": lambda cast, env: cast.chance.pick(["cup", "plate", "vase", "lamp", "bowl", "jar"]),
}


class Teller:
    """Expands templates into one story."""

    def __init__(self, chance):
        self.chance = chance
        self.cast = Cast(chance)
        self.env = {}

    def declare(self, slots):
        for slot in slots.split():
            name, kind = slot.split(":")
            if kind in WORD_KINDS:
                self.env[name] = self.cast.word(WORD_KINDS[kind])
            elif kind in ROW_KINDS:
                self.env[name] = self.cast.row(ROW_KINDS[kind])
            else:
                self.env[name] = getattr(self.cast, kind)(self.env)

    def slot(self, path):
        name, _, field = path.partition(".")
        if name not in self.env:
            self.env[name] = IMPLIED[name](self.cast, self.env)
        value = self.env[name]
        return str(getattr(value, field) if field else value)

    def alternatives(self, text, start):
        """The alternatives of the group that opens at text[start], and the position after it."""
        depth, parts, begin = 0, [], start + 1
        for i in range(start, len(text)):
            if text[i] == "{":
                depth += 1
            elif text[i] == "}":
                depth -= 1
                if depth == 0:
                    return parts + [text[begin:i]], i + 1
            elif text[i] == "|" and depth == 1:
                parts.append(text[begin:i])
                begin = i + 1
        raise ValueError("unclosed group: " + text)

    def expand(self, text):
        out, i = [], 0
        while i < len(text):
            if text[i] == "{":
                parts, i = self.alternatives(text, i)
                out.append(self.expand(self.chance.pick(parts)))
            elif text[i] == "<":
                end = text.index(">", i)
                out.append(self.slot(text[i + 1:end]))
                i = end + 1
            elif text[i] == "[":
                end = text.index("]", i)
                out.append(self.expand(SHARED[text[i + 1:end]]))
                i = end + 1
            else:
                out.append(text[i])
                i += 1
        return "".join(out)

    def tell(self):
        _, slots, sentences = self.chance.pick(PLOTS)
        self.declare(slots)
        return polish(" ".join(self.expand(sentence) for sentence in sentences))


def polish(text):
    """Spaces, articles and capital letters."""
    text = re.sub(r" +", " ", text).strip()
    text = re.sub(r" ?\n ?", "\n", text)
    text = re.sub(r" ([.,!?])", r"\1", text)
    text = re.sub(r"(?<!\w)@ ([aeiouAEIOU]|hon|hour)", r"an \1", text)
    text = re.sub(r"(?<!\w)@ ", "a ", text)
    start = r'(^|[.!?] |\." |\n)("?)([a-z])'
    return re.sub(start, lambda m: m.group(1) + m.group(2) + m.group(3).upper(), text)


def story(seed, number):
    """Story `number` of the corpus of `seed`, and the nats its choices took."""
    chance = Chance(seed * 0x9E3779B97F4A7C15 + number * 0xD1342543DE82EF95)
    chance.below(2)
    chance.nats = 0.0
    return Teller(chance).tell(), chance.nats


def print_stats(stories, seed):
    texts, nats = zip(*(story(seed, i) for i in range(stories)))
    tokens = [re.findall(r"\w+", text) for text in texts]
    print("stories          %d, %d distinct" % (stories, len(set(texts))))
    print("words            %d, %d distinct" % (sum(map(len, tokens)), len({w for t in tokens for w in t})))
    print("words a story    %.1f, longest %d" % (sum(map(len, tokens)) / stories, max(map(len, tokens))))
    print("nats a story     %.1f at most" % (sum(nats) / stories))


def main():
    parser = argparse.ArgumentParser(description="write the corpus of the demo model")
    parser.add_argument("--stories", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stats", action="store_true")
    args = parser.parse_args()
    if args.stats:
        print_stats(args.stories, args.seed)
        return
    for number in range(args.stories):
        print(story(args.seed, number)[0] + "\n")


if __name__ == "__main__":
    main()
