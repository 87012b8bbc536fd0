/* A texture object over a buffer is made for every frame; the buffer is freed, the object is not
 * destroyed.
 *
 * Expect: verdict FINDINGS; hypothesis RESOURCE_LEAK;
 *         culprit hipCreateTextureObject site=draw; messenger none */
#include "case.h"

enum { COUNT = 256 };

void draw(float *memory) {
    hipResourceDesc from = { .resType = hipResourceTypeLinear };
    const hipTextureDesc how = { .readMode = hipReadModeElementType };
    hipTextureObject_t texture;
    from.res.linear.devPtr = memory;
    from.res.linear.desc = (hipChannelFormatDesc){ 32, 0, 0, 0, hipChannelFormatKindFloat };
    from.res.linear.sizeInBytes = COUNT * sizeof *memory;
    CHECK(hipCreateTextureObject(&texture, &from, &how, NULL));
    if (!BUG)
        CHECK(hipDestroyTextureObject(texture));
}

int main(void) {
    float *memory;
    CHECK(hipMalloc((void **)&memory, COUNT * sizeof *memory));
    for (int i = 0; i < 3; i++)
        draw(memory);
    CHECK(hipFree(memory));
    return 0;
}
