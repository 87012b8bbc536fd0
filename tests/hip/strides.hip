// Kernels that touch bytes at equal distances: a column of a matrix, a tile that is transposed, one member of
// every structure. BUG_COLUMN, BUG_TILE and BUG_POINT read what nothing has written.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        if ((call) != hipSuccess)                                                                  \
            exit(1);                                                                               \
    } while (0)

enum { ROWS = 300, WIDTH = 100, TILE = 100, PITCH = 200, POINTS = 20000 };

#ifdef BUG_COLUMN
enum { READ_COLUMN = 8 };
#else
enum { READ_COLUMN = 7 };
#endif
#ifdef BUG_TILE
enum { READ_TILE = TILE + 4 };
#else
enum { READ_TILE = TILE };
#endif

// Squares: no two distances are equal, so that they are many ranges.
enum { SQUARES = 100 };

struct point {
    float x, y, z;
};

__global__ void column(float *to, int rows, int width, int at) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < rows)
        to[i * width + at] = (float)i;
}

__global__ void next_column(const float *from, float *to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < ROWS)
        to[i] = from[i * WIDTH + READ_COLUMN] + 1;
}

__global__ void transpose(const float *from, float *to) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < READ_TILE && y < READ_TILE)
        to[x * PITCH + y] = from[y * PITCH + x];
}

__global__ void set_x(point *p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < POINTS)
        p[i].x = (float)i;
}

__global__ void set_y(point *p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < POINTS)
        p[i].y = (float)i;
}

__global__ void take(const point *p, float *to) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef BUG_POINT
    if (i < POINTS)
        to[i] = p[i].z;
#else
    if (i < POINTS)
        to[i] = p[i].x;
#endif
}

__global__ void set_squares(float *to) {
    int i = threadIdx.x;
    if (i < SQUARES)
        to[i * i] = (float)i;
}

__global__ void get_squares(const float *from, float *to) {
    int i = threadIdx.x;
    if (i < SQUARES)
        to[i] = from[i * i];
}

int main() {
    float *matrix, *sums, *from, *to, *taken;
    point *points;
    static float host[POINTS], tile[TILE * TILE];
    CHECK(hipMalloc(&matrix, ROWS * WIDTH * sizeof *matrix));
    CHECK(hipMalloc(&sums, ROWS * sizeof *sums));
    CHECK(hipMalloc(&from, PITCH * PITCH * sizeof *from));
    CHECK(hipMalloc(&to, PITCH * PITCH * sizeof *to));
    CHECK(hipMalloc(&points, POINTS * sizeof *points));
    CHECK(hipMalloc(&taken, POINTS * sizeof *taken));

    column<<<2, 256>>>(matrix, ROWS, WIDTH, 7);
    next_column<<<2, 256>>>(matrix, sums);
    CHECK(hipMemcpy(host, sums, ROWS * sizeof *sums, hipMemcpyDeviceToHost));

    for (int i = 0; i < TILE; i++)
        column<<<1, 128>>>(from, TILE, PITCH, i);
    transpose<<<dim3(7, 7), dim3(16, 16)>>>(from, to);
    CHECK(hipMemcpy2D(tile, TILE * sizeof *tile, to, PITCH * sizeof *to, TILE * sizeof *tile, TILE,
                      hipMemcpyDeviceToHost));

    set_x<<<(POINTS + 255) / 256, 256>>>(points);
    set_y<<<(POINTS + 255) / 256, 256>>>(points);
    take<<<(POINTS + 255) / 256, 256>>>(points, taken);
    CHECK(hipMemcpy(host, taken, POINTS * sizeof *taken, hipMemcpyDeviceToHost));

    float *squares;
    CHECK(hipMalloc(&squares, SQUARES * SQUARES * sizeof *squares));
    set_squares<<<1, 128>>>(squares);
    get_squares<<<1, 128>>>(squares, taken);
    CHECK(hipMemcpy(host, taken, SQUARES * sizeof *taken, hipMemcpyDeviceToHost));
    CHECK(hipFree(squares));
    printf("%g %g\n", host[10], tile[205]);

    CHECK(hipFree(matrix));
    CHECK(hipFree(sums));
    CHECK(hipFree(from));
    CHECK(hipFree(to));
    CHECK(hipFree(points));
    CHECK(hipFree(taken));
    return 0;
}
