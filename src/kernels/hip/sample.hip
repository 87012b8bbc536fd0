/* sample.hip - drawing tokens: shortlist and sample. They draw exactly the tokens that native code draws, because
 * they use the same order, sums and series (choose.c).
 *
 * A group has at most CHOICES candidates, HELD in the registers of a thread: number thread + i * THREADS. A
 * candidate's key is its logit as a number that orders like it; of equal keys the lower number comes first. What is
 * not a candidate has the key 0, and there are always enough candidates with other keys. */

enum { CHOICES = 4096, HELD = CHOICES / THREADS, KEPT = 128, LISTED = 2 * KEPT + 1, SETTINGS = 8 };

DEVICE u32 key_of(float logit) {
    u32 bits = bits_of(logit);
    bits = bits == 0x80000000 ? 0 : bits; /* the zeros are equal */
    return most(bits & 0x80000000 ? ~bits : bits | 0x80000000, 1);
}

/* NaN or +Inf. */
DEVICE bool is_bad(float logit) {
    u32 bits = bits_of(logit);
    return (bits & 0x7fffffff) > 0x7f800000 || bits == 0x7f800000;
}

/* The sum of a number of every thread, in all threads; turn alternates between calls, so that no thread writes
 * what others still read. */
DEVICE u32 sum_counts(u32 mine, u32 turn) {
    SHARED u32 sums[2][WAVES];
    for (u32 step = WAVE / 2; step; step /= 2)
        mine += bits_of(from_lane(float_of(mine), lane_id() ^ step));
    if (lane_id() == 0)
        sums[turn % 2][wave_id()] = mine;
    barrier();
    u32 sum = 0;
    for (u32 i = 0; i < WAVES; i++)
        sum += sums[turn % 2][i];
    return sum;
}

/* Which candidates are the best. */
struct limit {
    u32 key;    /* all above it … */
    u32 number; /* … and those that have it, up to this number */
};

DEVICE bool is_within(struct limit l, u32 key, u32 number) {
    return key > l.key || (key == l.key && number <= l.number);
}

DEVICE u32 count_within(const u32 keys[HELD], struct limit l, u32 turn) {
    u32 count = 0;
    for (u32 i = 0; i < HELD; i++)
        count += is_within(l, keys[i], thread_id() + i * THREADS);
    return sum_counts(count, turn);
}

/* The limit within which there are exactly `keep` candidates: bit by bit, first the key that as many have
 * or exceed, then the number among equals. */
DEVICE struct limit find_limit(const u32 keys[HELD], u32 keep) {
    struct limit l = { 0, CHOICES - 1 };
    u32 turn = 0;
#pragma nounroll
    for (u32 bit = 0x80000000; bit; bit /= 2) {
        struct limit higher = { l.key | bit, l.number };
        if (count_within(keys, higher, turn++) >= keep)
            l = higher;
    }
#pragma nounroll
    for (u32 bit = CHOICES / 2; bit; bit /= 2) {
        struct limit lower = { l.key, l.number - bit };
        if (count_within(keys, lower, turn++) >= keep)
            l = lower;
    }
    return l;
}

/* The best, in order. */
struct best {
    float logit[KEPT];
    u32 number[KEPT];
};

/* Sorts the candidates within the limit into `to`: a candidate's place is how many come before it. */
DEVICE void sort_best(struct best *to, const u32 keys[HELD], const float logits[HELD], struct limit l,
                      u32 keep) {
    SHARED u32 found, key[KEPT], number[KEPT];
    SHARED float logit[KEPT];
    if (thread_id() == 0)
        found = 0;
    barrier();
    for (u32 i = 0; i < HELD; i++) {
        u32 mine = thread_id() + i * THREADS;
        if (is_within(l, keys[i], mine)) {
            u32 at = __atomic_fetch_add(&found, 1, __ATOMIC_RELAXED);
            key[at] = keys[i];
            number[at] = mine;
            logit[at] = logits[i];
        }
    }
    barrier();
    if (thread_id() < keep) {
        struct limit mine = { key[thread_id()], number[thread_id()] };
        u32 before = 0;
        for (u32 i = 0; i < keep; i++)
            before += is_within(mine, key[i], number[i]) && number[i] != mine.number;
        to->logit[before] = logit[thread_id()];
        to->number[before] = mine.number;
    }
    barrier();
}

DEVICE u32 count_bad(const float logits[HELD], u32 turn) {
    u32 count = 0;
    for (u32 i = 0; i < HELD; i++)
        count += is_bad(logits[i]);
    return sum_counts(count, turn);
}

/* The group's candidates: the n logits from `from` on. */
DEVICE void load_logits(float logits[HELD], u32 keys[HELD], const float *from, u32 n) {
    for (u32 i = 0; i < HELD; i++) {
        u32 number = thread_id() + i * THREADS;
        logits[i] = number < n ? from[number] : 0;
        keys[i] = number < n ? key_of(logits[i]) : 0;
    }
}

/* ---- shortlist: a group per list ---------------------------------------------------------------- */

KERNEL(THREADS)
shortlist(i32 *lists, const float *logits, const i32 *settings, u32 rows, u32 vocab) {
    SHARED struct best best;
    const u32 count = (vocab + CHOICES - 1) / CHOICES, row = group_id() / count;
    const u32 first = group_id() % count * CHOICES, n = least(vocab - first, CHOICES);
    const u32 keep = least(least((u32)settings[(u64)row * SETTINGS], KEPT), n);
    float mine[HELD];
    u32 keys[HELD];
    load_logits(mine, keys, logits + (u64)row * vocab + first, n);
    const u32 bad = count_bad(mine, 1);
    sort_best(&best, keys, mine, find_limit(keys, keep), keep);
    lists += (u64)row * LISTED * count + group_id() % count;
    if (thread_id() < KEPT) {
        bool kept = thread_id() < keep && !bad;
        lists[thread_id() * count] = kept ? (i32)(first + best.number[thread_id()]) : -1;
        lists[(KEPT + thread_id()) * count] = kept ? (i32)bits_of(best.logit[thread_id()]) : 0;
    }
    if (thread_id() == 0)
        lists[2 * KEPT * count] = (i32)bad;
}

/* ---- sample: a group per row -------------------------------------------------------------------- */

struct rule {
    u32 keep;
    float top_p, min_p;
    double cold, draw;
};

DEVICE double load_double(const i32 *p) {
    return __builtin_bit_cast(double, (u64)(u32)p[0] | (u64)(u32)p[1] << 32);
}

DEVICE struct rule load_rule(const i32 *settings) {
    struct rule r = { (u32)settings[0], float_of((u32)settings[1]), float_of((u32)settings[2]),
                      load_double(settings + 4), load_double(settings + 6) };
    return r;
}

/* choose_exp() of choose.c, operation by operation. */
DEVICE double choose_exp(double x) {
#pragma clang fp contract(off)
    const double whole = 0x1.8p52;
    if (!(x > -707))
        return 0;
    double n = x * 0x1.71547652b82fep+0 + whole - whole;
    double r = x - n * 0x1.62e42fefap-1 - n * 0x1.cf79abc9e3b3ap-40;
    double sum = 0;
#define EXP_TERM(term) sum = sum * r + (term);
#include "kernels/hip/exp_series.def"
#undef EXP_TERM
    return sum * __builtin_bit_cast(double, (u64)(1023 + (i64)(i32)n) << 52);
}

/* The candidates of a row's lists: `keep` of each, but for those that it lacks. */
DEVICE void load_lists(float mine[HELD], u32 keys[HELD], i32 *listed, const i32 *lists, u32 count,
                       u32 keep) {
    for (u32 i = 0; i < HELD; i++) {
        u32 number = thread_id() + i * THREADS, at = number % keep * count + number / keep;
        bool there = number < count * keep;
        i32 id = there ? lists[at] : -1;
        mine[i] = there ? float_of((u32)lists[KEPT * count + at]) : 0;
        keys[i] = id >= 0 ? key_of(mine[i]) : 0;
        listed[number] = id;
    }
}

DEVICE u32 count_listed_bad(const i32 *lists, u32 count, u32 turn) {
    u32 mine = 0;
    for (u32 i = thread_id(); i < count; i += THREADS)
        mine += (u32)lists[2 * KEPT * count + i];
    return sum_counts(mine, turn);
}

/* One thread's work: which of n candidates with these weights, before temperature and with it, is drawn. */
DEVICE u32 draw_one(const double *plain, const double *warm, u32 n, struct rule r) {
#pragma clang fp contract(off)
    double total = 0, sum = 0;
    for (u32 i = 0; i < n; i++)
        total += plain[i];
    u32 left = 0;
    for (; left < n; left++) {
        if (left && (sum >= (double)r.top_p * total || plain[left] < (double)r.min_p))
            break;
        sum += plain[left];
    }
    total = 0;
    for (u32 i = 0; i < left; i++)
        total += warm[i];
    double at = r.draw * total;
    for (u32 i = 0; i < left; i++) {
        at -= warm[i];
        if (at < 0)
            return i;
    }
    return left - 1;
}

/* The place among the best of the one that is drawn; in thread 0. */
DEVICE u32 draw_best(const struct best *b, u32 n, struct rule r) {
#pragma clang fp contract(off)
    SHARED double plain[KEPT], warm[KEPT];
    if (r.keep == 1)
        return 0;
    if (thread_id() < n) {
        double below = (double)b->logit[thread_id()] - (double)b->logit[0];
        plain[thread_id()] = choose_exp(below);
        warm[thread_id()] = choose_exp(below * r.cold);
    }
    barrier();
    return thread_id() ? 0 : draw_one(plain, warm, n, r);
}

KERNEL(THREADS)
sample(i32 *tokens, const float *logits, const i32 *lists, const i32 *settings, i32 *ids, i32 *pos, u32 rows,
       u32 vocab, u32 advance) {
    SHARED struct best best;
    SHARED i32 listed[CHOICES];
    const u32 row = group_id(), count = (vocab + CHOICES - 1) / CHOICES;
    const bool whole = vocab <= CHOICES;
    settings += (u64)row * SETTINGS;
    const u32 keep = least(least((u32)settings[0], KEPT), vocab);
    float mine[HELD];
    u32 keys[HELD], bad;
    lists += (u64)row * LISTED * count;
    if (whole) {
        load_logits(mine, keys, logits + (u64)row * vocab, vocab);
        bad = count_bad(mine, 1);
    } else {
        load_lists(mine, keys, listed, lists, count, keep);
        bad = count_listed_bad(lists, count, 1);
    }
    sort_best(&best, keys, mine, find_limit(keys, keep), keep);
    u32 drawn = draw_best(&best, keep, load_rule(settings)); /* not before: registers are few */
    if (thread_id())
        return;
    if (!bad && best.logit[0] == -__builtin_inff())
        bad = vocab;
    u32 number = best.number[drawn];
    const i32 token = bad ? -(i32)bad : whole ? (i32)number : listed[number];
    tokens[row] = token;
    if (advance) {
        ids[row] = token;
        pos[row]++;
    }
}
