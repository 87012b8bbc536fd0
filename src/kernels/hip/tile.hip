/* tile.hip - a wave's part of a product on matrix cores: 32 rows, 64 tokens.
 *
 * Row r of a product of 32 x 32 is a row of weights, column c a token: sum i of a lane belongs to row
 * i / 4 * 8 + lane / 32 * 4 + i % 4 and token lane % 32. */

#if MATRIX_CORES

/* The sums of the first 32 tokens and of the others. Not an array: the compiler would keep that in one piece
 * of 32 registers and copy it. */
struct tile_sums {
    f32x16 first, second;
};

DEVICE void clear_sums(struct tile_sums *sum) {
    sum->first = sum->second = 0;
}

DEVICE f32x16 multiply_eight(f16x8 w, f16x8 x, f32x16 sum) {
    sum = __builtin_amdgcn_mfma_f32_32x32x8f16(w.lo, x.lo, sum, 0, 0, 0);
    return __builtin_amdgcn_mfma_f32_32x32x8f16(w.hi, x.hi, sum, 0, 0, 0);
}

/* A sum is complete before the next is begun: several at the same time would take more registers than
 * there are. */
DEVICE void in_order(f32x16 *sum) {
    __asm__ volatile("" : "+v"(*sum));
}

/* Factors of a wave's 32 rows, from the lanes that have them. Only this wave uses them; what its other 32
 * lanes store is not read. */
struct row_factors {
    __attribute__((aligned(16))) float of[WAVE];
};

/* From here on until sharing_ends() the lanes of a wave store what others of it read. */
DEVICE void sharing_begins(void) {
    __builtin_amdgcn_wave_barrier();
}

DEVICE void sharing_ends(void) {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
}

/* The factor of each of a lane's 16 sums. */
DEVICE f32x16 factors_of_sums(const struct row_factors *f) {
    f32x16 all;
    for (int i = 0; i < 4; i++) {
        f32x4 four = *(const f32x4 *)&f->of[i * 8 + lane_id() / 32 * 4];
        for (int j = 0; j < 4; j++)
            all[4 * i + j] = four[j];
    }
    return all;
}

#endif
