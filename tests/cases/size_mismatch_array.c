/* An atlas of 32 rows is filled tile by tile; the program counts rows from 1, so that the last
 * tiles end past the array.
 *
 * Expect: verdict ROOT_CAUSE; hypothesis SIZE_MISMATCH; culprit hipMemcpy2DToArray site=put;
 *         messenger hipMemcpy2DToArray site=put */
#include "case.h"

enum { SIDE = 32, TILE = 8 };

void put(hipArray_t atlas, const float *tile, size_t column, size_t row) {
    CHECK(hipMemcpy2DToArray(atlas, column * sizeof(float), row + BUG, tile, TILE * sizeof(float),
                             TILE * sizeof(float), TILE, hipMemcpyHostToDevice));
}

int main(void) {
    static float tile[TILE * TILE];
    const hipChannelFormatDesc floats = { 32, 0, 0, 0, hipChannelFormatKindFloat };
    hipArray_t atlas = NULL;
    CHECK(hipMallocArray(&atlas, &floats, SIDE, SIDE, 0));
    for (size_t row = 0; row < SIDE; row += TILE)
        for (size_t column = 0; column < SIDE; column += TILE)
            put(atlas, tile, column, row);
    CHECK(hipFreeArray(atlas));
    return 0;
}
