"""words.py - the word lists of the demo corpus.

Every list is plain data. Where a word needs company (an animal its food, a worker his workplace)
they stand together in one tuple, so that the stories stay true to themselves.
"""

GIRLS = """Anna Mia Lily Rosa Emma Nora Clara Ella Ruth Ida Greta Maya Lucy Alice Eva Hanna Julia Sara
Tina Vera Zoe Olga Nina Lena Kate Jane Mary Lisa Ada Amy Grace Helen Iris Jenny Kim Leah Molly Paula
Rita Sofia Wendy Polly Daisy Emily Fiona Martha Dora Bella Stella Ivy""".split()

BOYS = """Tom Ben Max Leo Sam Tim Paul Jack Oscar Felix Hugo Noah Otto Peter Simon Theo Victor Walter
Adam Carl David Eric Frank George Henry Ivan Jim Karl Luke Mark Nick Oliver Philip Ralph Robert Samuel
Daniel Finn Bruno Emil Anton Martin Thomas James John Harry Charlie Milo Toby Arthur""".split()

# Parts of made-up names: the model must learn to copy a name it has never met.
NAME_HEADS = """Ba Be Bi Bo Da De Do Fa Fe Fi Ga Go Ha Jo Ka Ke Ki Ko La Le Lo Lu Ma Me Mi Mo Na Ne Ni
No Pa Pe Pi Po Ra Re Ri Ro Sa Se Si So Ta Te Ti To Va Ve Vi Wa We Ya Za Ze Zi""".split()
NAME_TAILS_GIRL = "na la ra lia nia ria sa mina lena rika dora bella vina tta ssa".split()
NAME_TAILS_BOY = "ro lo no bert mund rik dan vin ric lan mer tor bin das lix".split()

CHILD_TRAITS = """kind brave clever quiet cheerful curious careful gentle honest lively patient polite
friendly happy shy funny little young busy proud""".split()

# relation, gender
FAMILY = [("mother", "f"), ("father", "m"), ("grandmother", "f"), ("grandfather", "m"),
          ("sister", "f"), ("brother", "m"), ("aunt", "f"), ("uncle", "m")]

# worker, workplace with preposition, what they do (base, past), a product or tool
WORKERS = [
    ("baker", "in a small bakery", "bake bread", "baked bread", "a warm loaf"),
    ("farmer", "on a farm", "feed the cows", "fed the cows", "a basket of eggs"),
    ("teacher", "in a school", "read stories to the children", "read stories to the children", "a book"),
    ("doctor", "in a hospital", "help sick people", "helped sick people", "a clean bandage"),
    ("captain", "on a ship", "steer the ship", "steered the ship", "an old map"),
    ("gardener", "in a garden", "water the flowers", "watered the flowers", "a bunch of roses"),
    ("fisherman", "by the sea", "catch fish", "caught fish", "a silver fish"),
    ("painter", "in a bright room", "paint pictures", "painted pictures", "a small picture"),
    ("tailor", "in a little shop", "sew coats", "sewed coats", "a warm coat"),
    ("cook", "in a big kitchen", "make soup", "made soup", "a bowl of soup"),
    ("carpenter", "in a workshop", "build chairs", "built chairs", "a wooden chair"),
    ("postman", "in the village", "bring letters", "brought letters", "a letter"),
    ("clockmaker", "in a narrow shop", "repair clocks", "repaired clocks", "a tiny clock"),
    ("shepherd", "on the hills", "watch the sheep", "watched the sheep", "a ball of wool"),
    ("miller", "in an old mill", "grind the corn", "ground the corn", "a bag of flour"),
    ("librarian", "in the library", "sort the books", "sorted the books", "a book of poems"),
    ("beekeeper", "near the woods", "look after the bees", "looked after the bees", "a jar of honey"),
    ("potter", "in a quiet street", "make cups and bowls", "made cups and bowls", "a blue cup"),
]

# animal, habitat, food, two traits, cry (past), movement (past), a fact
ANIMALS = [
    ("cat", "in a house", "fish", ("soft", "lazy"), "meowed", "jumped", "It likes to sleep in the sun."),
    ("dog", "in a yard", "meat", ("loyal", "playful"), "barked", "ran", "It can smell many things."),
    ("rabbit", "in a field", "grass", ("quick", "shy"), "squeaked", "hopped", "It has long ears."),
    ("fox", "in the forest", "mice", ("clever", "red"), "yelped", "ran", "It has a thick tail."),
    ("owl", "in a hollow tree", "mice", ("wise", "quiet"), "hooted", "flew", "It sleeps by day and flies at night."),
    ("bear", "in a cave", "berries", ("big", "strong"), "growled", "walked", "It sleeps all winter."),
    ("duck", "on a pond", "bread", ("cheerful", "yellow"), "quacked", "swam", "It can swim and fly."),
    ("frog", "near a pond", "flies", ("green", "small"), "croaked", "hopped", "It can jump very far."),
    ("mouse", "under the floor", "cheese", ("tiny", "gray"), "squeaked", "ran", "It is afraid of cats."),
    ("horse", "on a farm", "hay", ("fast", "proud"), "neighed", "trotted", "It can pull a heavy cart."),
    ("cow", "on a farm", "grass", ("calm", "brown"), "mooed", "walked", "It gives us milk."),
    ("sheep", "on a hill", "grass", ("woolly", "gentle"), "bleated", "walked", "It gives us wool."),
    ("hen", "on a farm", "corn", ("busy", "white"), "clucked", "ran", "It lays eggs."),
    ("goat", "in the mountains", "leaves", ("stubborn", "white"), "bleated", "climbed", "It can climb steep rocks."),
    ("squirrel", "in a tall tree", "nuts", ("quick", "brown"), "chattered", "climbed", "It hides nuts for the winter."),
    ("hedgehog", "under a bush", "worms", ("shy", "round"), "snuffled", "walked", "It has many sharp spines."),
    ("deer", "in the forest", "leaves", ("gentle", "shy"), "called", "ran", "It can hear every little sound."),
    ("wolf", "in the forest", "meat", ("gray", "wild"), "howled", "ran", "It lives with its family."),
    ("bird", "in a nest", "seeds", ("small", "cheerful"), "sang", "flew", "It builds a nest in spring."),
    ("crow", "on a roof", "seeds", ("black", "clever"), "cawed", "flew", "It never forgets a face."),
    ("bee", "in a hive", "nectar", ("busy", "tiny"), "buzzed", "flew", "It makes sweet honey."),
    ("turtle", "by a lake", "leaves", ("slow", "patient"), "sighed", "crawled", "It carries its house on its back."),
    ("snail", "in a garden", "leaves", ("slow", "small"), "sighed", "crawled", "It likes the rain."),
    ("butterfly", "in a meadow", "nectar", ("light", "pretty"), "sighed", "flew", "It was once a caterpillar."),
    ("elephant", "in a warm country", "leaves", ("huge", "gentle"), "trumpeted", "walked", "It never forgets a friend."),
    ("lion", "in a dry land", "meat", ("proud", "strong"), "roared", "walked", "It sleeps most of the day."),
    ("monkey", "in the jungle", "fruit", ("funny", "quick"), "chattered", "climbed", "It can hang by its tail."),
    ("penguin", "on the ice", "fish", ("funny", "fat"), "squawked", "swam", "It is a bird that cannot fly."),
    ("whale", "in the ocean", "tiny shrimps", ("huge", "calm"), "sang", "swam", "It is the largest animal of all."),
    ("dolphin", "in the sea", "fish", ("friendly", "fast"), "whistled", "swam", "It loves to jump out of the water."),
    ("seal", "on the rocks", "fish", ("round", "playful"), "barked", "swam", "It can hold its breath for a long time."),
    ("donkey", "on a farm", "hay", ("stubborn", "patient"), "brayed", "walked", "It can carry heavy bags."),
    ("kitten", "in a barn", "milk", ("soft", "tiny"), "meowed", "jumped", "It is a very young cat."),
    ("puppy", "in a basket", "meat", ("playful", "small"), "barked", "ran", "It is a very young dog."),
]

# Which of them may be found in a house, on land in a story, or at sea.
PETS = {"cat", "dog", "mouse", "kitten", "puppy", "rabbit"}
LITTLE_ANIMALS = PETS | {"fox", "owl", "duck", "frog", "hen", "goat", "squirrel", "hedgehog", "bird", "crow",
                         "turtle", "sheep", "donkey"}
SEA_ANIMALS = {"whale", "dolphin", "seal"}

COLORS = "red blue green yellow white black brown purple orange pink gray golden silver".split()

# Things a child may own, lose, break or wish for: singular nouns that stand with a color.
TOYS = """ball kite doll drum boat train hat scarf coat cup bag book box bell ring key lamp pencil
umbrella button ribbon whistle balloon puzzle wagon bicycle basket blanket mask marble flute""".split()

BIG_TOYS = {"wagon", "bicycle"}
FRAGILE_TOYS = {"boat", "train", "drum", "cup", "lamp", "bell", "whistle", "umbrella", "wagon", "bicycle",
                "flute", "kite", "box", "doll"}

TOOLS = ["hammer", "saw", "rope", "ladder", "needle", "brush", "shovel", "pot of glue", "piece of wire"]

# dish, ingredients
DISHES = [
    ("a cake", ["flour", "sugar", "eggs", "butter"]),
    ("a pie", ["apples", "flour", "butter", "sugar"]),
    ("soup", ["carrots", "potatoes", "onions", "salt"]),
    ("bread", ["flour", "water", "salt", "yeast"]),
    ("pancakes", ["milk", "eggs", "flour", "honey"]),
    ("cookies", ["sugar", "butter", "nuts", "flour"]),
    ("a salad", ["tomatoes", "leaves", "cheese", "oil"]),
    ("jam", ["berries", "sugar", "lemons", "plums"]),
]

FOODS = """apple pear sandwich cookie plum carrot orange pancake cake pie muffin peach banana""".split()

# place with "in/at/on", the same with "to", noun with article
PLACES = [
    ("in the park", "to the park", "the park"),
    ("in the forest", "to the forest", "the forest"),
    ("in the garden", "to the garden", "the garden"),
    ("by the river", "to the river", "the river"),
    ("by the lake", "to the lake", "the lake"),
    ("at the beach", "to the beach", "the beach"),
    ("at the market", "to the market", "the market"),
    ("on the hill", "to the hill", "the hill"),
    ("in the meadow", "to the meadow", "the meadow"),
    ("at the farm", "to the farm", "the farm"),
    ("in the village", "to the village", "the village"),
    ("at the old mill", "to the old mill", "the old mill"),
    ("near the bridge", "to the bridge", "the bridge"),
    ("in the town square", "to the town square", "the town square"),
    ("at the harbor", "to the harbor", "the harbor"),
    ("near the school", "to the school", "the school"),
]

HIDING = ["under the bed", "behind the door", "in the tall grass", "under a bench", "behind a bush",
          "in an old box", "on a high shelf", "under the stairs", "between two stones", "in a drawer",
          "behind the curtain", "under a pile of leaves", "in the kitchen", "in a basket",
          "beside the well", "under the table"]

HOMES = ["in a small house near the forest", "in a little village by the sea", "in a big town",
         "on a farm behind the hill", "in a tall house by the river", "in a quiet street",
         "at the edge of the forest", "in a white house with a green door", "near the old mill",
         "in a valley between two mountains", "on a small island", "in a cottage with a garden"]

# base, past, -ing
GAMES = [
    ("play", "played", "playing"), ("run", "ran", "running"), ("jump", "jumped", "jumping"),
    ("draw", "drew", "drawing"), ("read", "read", "reading"), ("sing", "sang", "singing"),
    ("dance", "danced", "dancing"), ("climb trees", "climbed trees", "climbing trees"),
    ("pick flowers", "picked flowers", "picking flowers"),
    ("play hide and seek", "played hide and seek", "playing hide and seek"),
    ("tell stories", "told stories", "telling stories"),
    ("fly a kite", "flew a kite", "flying a kite"),
    ("build small boats", "built small boats", "building small boats"),
    ("collect stones", "collected stones", "collecting stones"),
    ("watch the clouds", "watched the clouds", "watching the clouds"),
    ("feed the birds", "fed the birds", "feeding the birds"),
]

# base, past, -ing, how it goes wrong
SKILLS = [
    ("ride a bicycle", "rode the bicycle", "riding", "fell into the grass"),
    ("swim", "swam across the pond", "swimming", "swallowed some water"),
    ("play the flute", "played a whole song", "playing", "made only a terrible noise"),
    ("draw a horse", "drew a beautiful horse", "drawing", "drew something like a potato"),
    ("bake bread", "baked a perfect loaf", "baking", "burned the loaf"),
    ("whistle", "whistled a merry tune", "whistling", "blew only air"),
    ("skate", "skated around the pond", "skating", "slipped on the ice"),
    ("tie a knot", "tied a strong knot", "tying knots", "lost the end of the rope"),
    ("write a poem", "wrote a lovely poem", "writing", "could not find a word"),
    ("catch a ball", "caught the ball", "catching", "dropped the ball"),
    ("read", "read a whole page", "reading", "mixed up the letters"),
    ("dance", "danced without a mistake", "dancing", "stepped on a foot"),
]

# what is feared, where it is met, why it is harmless
FEARS = [
    ("the dark", "In the evening, when the lamp went out,", "the dark is only the day asleep"),
    ("thunder", "One night, when a storm came,", "thunder is only a loud noise"),
    ("deep water", "One day at the lake,", "water carries everyone who stays calm"),
    ("big dogs", "One day, when a big dog came down the street,", "most dogs only want to play"),
    ("high places", "One day on the old tower,", "nothing happens to those who hold on tight"),
    ("spiders", "One morning, when a spider sat on the wall,", "a spider is more afraid of us"),
    ("the old house", "One evening, near the old house,", "an old house is only a house"),
]

# weather sentence (past), what one does about it
WEATHERS = [
    ("It was a sunny day", "warm", "The sky was blue and clear."),
    ("It was a cold day", "cold", "Frost lay on the windows."),
    ("It was a rainy day", "wet", "Big drops fell on the roof."),
    ("It was a windy day", "windy", "The leaves flew through the air."),
    ("It was a snowy day", "cold", "Everything was white and quiet."),
    ("It was a foggy day", "gray", "Nobody could see the end of the street."),
    ("It was a warm day", "warm", "The bees hummed in the flowers."),
    ("It was a quiet day", "calm", "Not a sound could be heard."),
]

SEASONS = [
    ("spring", "the snow melts and the first flowers open", "The birds build their nests.", "The days grow longer."),
    ("summer", "the sun is hot and the days are long", "The children swim in the lake.", "The evenings are warm."),
    ("autumn", "the leaves turn red and yellow", "The farmers bring in the corn.", "The wind grows cold."),
    ("winter", "snow covers the fields and the roofs", "The children build a snowman.", "The nights are long and dark."),
]

VEHICLES = [("train", "took the train", "The wheels sang on the rails"),
            ("boat", "took a boat", "The waves rocked the boat"),
            ("bus", "took the bus", "The bus was full of people"),
            ("cart", "rode in a cart", "The horse trotted slowly"),
            ("bicycle", "rode a bicycle", "The wind blew from behind"),
            ("ship", "sailed on a ship", "The sails were white and wide")]

SIGHTS = ["a tall tower", "a field of sunflowers", "a stone bridge", "a herd of sheep", "an old castle",
          "a waterfall", "a long row of trees", "a white lighthouse", "a busy market", "a windmill",
          "a rainbow", "a flock of birds", "a deep valley", "a train full of coal"]

# crop, where it grows, how it looks when ripe
CROPS = [("a sunflower", "as tall as a man", "its yellow head followed the sun"),
         ("a pumpkin", "as big as a wheel", "it shone orange in the garden"),
         ("a tomato plant", "full of green leaves", "red tomatoes hung from it"),
         ("an apple tree", "taller every year", "sweet apples hung from it"),
         ("a rose", "strong and straight", "a red flower opened"),
         ("a bean", "up a long stick", "green beans hung from it"),
         ("a strawberry plant", "low and wide", "red berries hid under its leaves")]

NOISES = [("a scratching sound", "scratched at the door"), ("a soft knock", "knocked on the window"),
          ("a strange rustle", "rustled in the leaves"), ("a low hum", "hummed in the corner"),
          ("a little squeak", "squeaked behind the wall"), ("a loud bang", "banged in the attic")]

# country, capital
CAPITALS = [("France", "Paris"), ("Germany", "Berlin"), ("Italy", "Rome"), ("Spain", "Madrid"),
            ("England", "London"), ("Greece", "Athens"), ("Poland", "Warsaw"), ("Austria", "Vienna"),
            ("Portugal", "Lisbon"), ("Sweden", "Stockholm"), ("Norway", "Oslo"), ("Japan", "Tokyo"),
            ("Egypt", "Cairo"), ("Cuba", "Havana"), ("Ireland", "Dublin"), ("Finland", "Helsinki")]

# thing, is, does, where
THINGS = [
    ("sun", "hot and bright", "gives us light", "high in the sky"),
    ("moon", "round and pale", "shines at night", "above the clouds"),
    ("rain", "cool and fresh", "makes the flowers grow", "on the fields"),
    ("snow", "cold and white", "covers the roofs", "in the mountains"),
    ("sea", "deep and wide", "carries the ships", "between the lands"),
    ("wind", "strong and free", "moves the clouds", "over the hills"),
    ("river", "long and clear", "runs to the sea", "through the valley"),
    ("fire", "warm and red", "keeps us warm", "in the stove"),
    ("clock", "old and loud", "tells the time", "on the wall"),
    ("tree", "tall and green", "gives us shade", "in the garden"),
    ("bridge", "long and strong", "joins the two banks", "over the river"),
    ("lighthouse", "tall and white", "shows the ships their way", "on the rocks"),
    ("computer", "quick and quiet", "counts for us", "on the table"),
    ("library", "large and quiet", "keeps many books", "in the middle of the town"),
    ("kitchen", "warm and bright", "smells of bread", "at the end of the hall"),
    ("train", "long and fast", "brings people home", "on the rails"),
]

RULERS = [("king", "m"), ("queen", "f"), ("prince", "m"), ("princess", "f")]
RULER_TRAITS = "rich proud young lonely mighty wise".split()

NUMBERS = "two three four five six seven eight nine ten".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
