// Textures of arrays, of pitched and of linear memory, in one to three dimensions and in layers, with every
// address mode, filtered, normalised; texture references; surfaces of every integer format. Results are compared with the host's.
#include "check.h"

#include <algorithm>

enum { W = 20, H = 12, D = 5 };

__global__ void fetch1d(hipTextureObject_t t, float4 *out, int n) {
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        out[i] = tex1Dfetch<float4>(t, i);
}

__global__ void fetch_integers(hipTextureObject_t t, int *out) {
    out[threadIdx.x] = tex1Dfetch<int>(t, (int)threadIdx.x);
}

__global__ void read2d(hipTextureObject_t t, float *out, float x0, float y0, float step) {
    int x = threadIdx.x, y = threadIdx.y;
    out[y * blockDim.x + x] = tex2D<float>(t, x0 + step * x, y0 + step * y);
}

__global__ void read2di(hipTextureObject_t t, uchar4 *out) {
    int x = threadIdx.x, y = threadIdx.y;
    out[y * blockDim.x + x] = tex2D<uchar4>(t, (float)x, (float)y);
}

__global__ void read3d(hipTextureObject_t t, float *out) {
    int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
    out[(z * blockDim.y + y) * blockDim.x + x] = tex3D<float>(t, x + 0.5f, y + 0.5f, z + 0.5f);
}

__global__ void read_layers(hipTextureObject_t t, float *out) {
    int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
    out[(z * blockDim.y + y) * blockDim.x + x] = tex2DLayered<float>(t, (float)x, (float)y, z);
}

__global__ void copy_surface(hipSurfaceObject_t from, hipSurfaceObject_t to) {
    float v;
    surf2Dread(&v, from, (int)threadIdx.x * 4, (int)threadIdx.y);
    surf2Dwrite(v + 1.0f, to, (int)threadIdx.x * 4, (int)threadIdx.y);
}

// Image instructions as they are: surf2Dwrite() of HIP 5.2 makes floats of integers first, which no integer format can hold. out gets
// what the channels of a texel become.
__global__ void copy_channels(hipSurfaceObject_t from, hipSurfaceObject_t to, uint4 *out) {
    unsigned ADDRESS_SPACE_CONSTANT *f = (unsigned ADDRESS_SPACE_CONSTANT *)from, *t = (unsigned ADDRESS_SPACE_CONSTANT *)to;
    int2::Native_vec_ at = {(int)threadIdx.x, (int)threadIdx.y};
    float4::Native_vec_ v = __ockl_image_load_2D(f, at);
    __ockl_image_store_2D(t, at, v);
    out[threadIdx.y * blockDim.x + threadIdx.x] =
        make_uint4(__float_as_uint(v.x), __float_as_uint(v.y), __float_as_uint(v.z), __float_as_uint(v.w));
}

texture<float, 2, hipReadModeElementType> reference;
__global__ void read_reference(float *out) {
    out[threadIdx.y * blockDim.x + threadIdx.x] = tex2D(reference, (float)threadIdx.x, (float)threadIdx.y);
}

static hipArray_t make_array(const std::vector<float> &from, hipExtent extent, unsigned flags) {
    hipArray_t array;
    hipChannelFormatDesc desc = hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindFloat);
    CHECK(hipMalloc3DArray(&array, &desc, extent, flags));
    hipMemcpy3DParms p = {};
    p.srcPtr = make_hipPitchedPtr((void *)from.data(), extent.width * 4, extent.width, extent.height);
    p.dstArray = array;
    p.extent = make_hipExtent(extent.width, extent.height, extent.depth ? extent.depth : 1);
    p.kind = hipMemcpyHostToDevice;
    CHECK(hipMemcpy3D(&p));
    return array;
}

static hipTextureObject_t of_array(hipArray_t array, hipTextureAddressMode mode, hipTextureFilterMode filter,
                                   bool normalised) {
    hipResourceDesc r = {};
    hipTextureDesc t = {};
    hipTextureObject_t object;
    r.resType = hipResourceTypeArray;
    r.res.array.array = array;
    for (int i = 0; i < 3; i++)
        t.addressMode[i] = mode;
    t.filterMode = filter;
    t.normalizedCoords = normalised;
    CHECK(hipCreateTextureObject(&object, &r, &t, nullptr));
    return object;
}

static float at(const std::vector<float> &v, hipTextureAddressMode mode, int x, int y) {
    auto in = [mode](int i, int n) {
        if (mode == hipAddressModeWrap)
            return ((i % n) + n) % n;
        if (mode == hipAddressModeMirror) {
            int k = ((i % (2 * n)) + 2 * n) % (2 * n);
            return k < n ? k : 2 * n - 1 - k;
        }
        return mode == hipAddressModeBorder ? (i < 0 || i >= n ? -1 : i) : std::min(std::max(i, 0), n - 1);
    };
    int i = in(x, W), j = in(y, H);
    return i < 0 || j < 0 ? 0.0f : v[j * W + i];
}

static void modes(const std::vector<float> &image, hipArray_t array) {
    const hipTextureAddressMode all[] = {hipAddressModeWrap, hipAddressModeClamp, hipAddressModeMirror,
                                         hipAddressModeBorder};
    Buffer<float> out(32 * 32);
    for (hipTextureAddressMode mode : all)
        for (int linear = 0; linear < 2; linear++) {
            bool normalised = mode == hipAddressModeWrap || mode == hipAddressModeMirror;
            float sx = normalised ? W : 1, sy = normalised ? H : 1, step = normalised ? 0.1f : 1.25f;
            hipTextureObject_t t =
                of_array(array, mode, linear ? hipFilterModeLinear : hipFilterModePoint, normalised);
            float x0 = normalised ? -1.02f : -6.1f, y0 = normalised ? -0.93f : -4.3f;
            read2d<<<1, dim3(32, 32)>>>(t, out.device, x0, y0, step);
            std::vector<float> got = out.host();
            for (int k = 0; k < 32 * 32; k++) {
                float x = (x0 + step * (k % 32)) * sx, y = (y0 + step * (k / 32)) * sy, want;
                if (linear) {
                    x -= 0.5f, y -= 0.5f;
                    int i = (int)floorf(x), j = (int)floorf(y);
                    float a = x - i, b = y - j;
                    want = (1 - b) * ((1 - a) * at(image, mode, i, j) + a * at(image, mode, i + 1, j)) +
                           b * ((1 - a) * at(image, mode, i, j + 1) + a * at(image, mode, i + 1, j + 1));
                } else {
                    if (fabsf(x - rintf(x)) < 0.02f || fabsf(y - rintf(y)) < 0.02f)
                        continue; // either neighbour
                    want = at(image, mode, (int)floorf(x), (int)floorf(y));
                }
                EXPECT(fabsf(got[k] - want) <= (linear ? 2.0f : 0.0f), "mode %d, linear %d, %d: %g, not %g",
                       (int)mode, linear, k, got[k], want);
            }
            CHECK(hipDestroyTextureObject(t));
        }
}

static void others(const std::vector<float> &image) {
    // linear memory
    std::vector<float> pixels(4 * 100);
    for (size_t i = 0; i < pixels.size(); i++)
        pixels[i] = (float)i;
    Buffer<float> linear(pixels);
    Buffer<float4> four(120);
    hipResourceDesc r = {};
    hipTextureDesc t = {};
    hipTextureObject_t object;
    r.resType = hipResourceTypeLinear;
    r.res.linear.devPtr = linear.device;
    r.res.linear.desc = hipCreateChannelDesc(32, 32, 32, 32, hipChannelFormatKindFloat);
    r.res.linear.sizeInBytes = pixels.size() * sizeof(float);
    CHECK(hipCreateTextureObject(&object, &r, &t, nullptr));
    fetch1d<<<2, 64>>>(object, four.device, 120);
    std::vector<float4> got4 = four.host();
    for (int i = 0; i < 120; i++) // beyond the end: 0
        EXPECT(got4[i].x == (i < 100 ? 4 * i : 0) && got4[i].w == (i < 100 ? 4 * i + 3 : 0), "%d: %g", i,
               got4[i].x);
    CHECK(hipDestroyTextureObject(object));
    // pitched memory, bytes
    std::vector<uchar4> bytes(W * H);
    for (int i = 0; i < W * H; i++)
        bytes[i] = make_uchar4(i, 2 * i, 3 * i, 255 - i);
    uchar4 *pitched;
    size_t pitch;
    CHECK(hipMallocPitch((void **)&pitched, &pitch, W * sizeof(uchar4), H));
    CHECK(hipMemcpy2D(pitched, pitch, bytes.data(), W * 4, W * 4, H, hipMemcpyHostToDevice));
    r = {};
    r.resType = hipResourceTypePitch2D;
    r.res.pitch2D.devPtr = pitched;
    r.res.pitch2D.desc = hipCreateChannelDesc(8, 8, 8, 8, hipChannelFormatKindUnsigned);
    r.res.pitch2D.width = W;
    r.res.pitch2D.height = H;
    r.res.pitch2D.pitchInBytes = pitch;
    CHECK(hipCreateTextureObject(&object, &r, &t, nullptr));
    Buffer<uchar4> copy(W * H);
    read2di<<<1, dim3(W, H)>>>(object, copy.device);
    std::vector<uchar4> got = copy.host();
    for (int i = 0; i < W * H; i++)
        EXPECT(got[i].x == bytes[i].x && got[i].y == bytes[i].y && got[i].w == bytes[i].w, "byte %d", i);
    CHECK(hipDestroyTextureObject(object));
    CHECK(hipFree(pitched));
    (void)image;
}

// Integers of 32 bits have no normalised form: they are read as they are.
static void normalised_integers() {
    std::vector<int> values(64);
    for (int i = 0; i < 64; i++)
        values[i] = i * 0x01234567 - 7;
    Buffer<int> linear(values), out(64);
    hipResourceDesc r = {};
    hipTextureDesc t = {};
    hipTextureObject_t object;
    r.resType = hipResourceTypeLinear;
    r.res.linear.devPtr = linear.device;
    r.res.linear.desc = hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindSigned);
    r.res.linear.sizeInBytes = values.size() * sizeof(int);
    t.readMode = hipReadModeNormalizedFloat;
    CHECK(hipCreateTextureObject(&object, &r, &t, nullptr));
    fetch_integers<<<1, 64>>>(object, out.device);
    std::vector<int> got = out.host();
    for (int i = 0; i < 64; i++)
        EXPECT(got[i] == values[i], "%d: %d", i, got[i]);
    CHECK(hipDestroyTextureObject(object));
}

static void volumes() {
    std::vector<float> volume(W * H * D);
    for (size_t i = 0; i < volume.size(); i++)
        volume[i] = 0.5f * i;
    Buffer<float> out(volume.size());
    for (unsigned flags : {(unsigned)hipArrayDefault, (unsigned)hipArrayLayered}) {
        hipArray_t array = make_array(volume, make_hipExtent(W, H, D), flags);
        hipTextureObject_t t = of_array(array, hipAddressModeClamp,
                                        flags ? hipFilterModePoint : hipFilterModeLinear, false);
        if (flags)
            read_layers<<<D, dim3(W, H)>>>(t, out.device);
        else
            read3d<<<D, dim3(W, H)>>>(t, out.device);
        std::vector<float> got = out.host();
        for (size_t i = 0; i < got.size(); i++)
            EXPECT(got[i] == volume[i], "flags %u, %d: %g, not %g", flags, (int)i, got[i], volume[i]);
        CHECK(hipDestroyTextureObject(t));
        CHECK(hipFreeArray(array));
    }
}

// Channels of a texel: integers are extended by their sign, or without one; absent ones are 0, 0 and 1.
static unsigned channel(const unsigned char *texel, int bits, int count, bool is_signed, int c) {
    if (c >= count)
        return c == 3;
    if (bits == 8)
        return is_signed ? (unsigned)(signed char)texel[c] : texel[c];
    unsigned whole = 0;
    memcpy(&whole, texel + c * (bits / 8), bits / 8);
    return bits == 32 ? whole : is_signed ? (unsigned)(short)whole : whole;
}

// Every integer format of surfaces: what is loaded, and that storing it gives the same bytes.
static void formats() {
    for (int bits : {8, 16, 32})
        for (int count : {1, 2, 4})
            for (bool is_signed : {false, true}) {
                const size_t texel = bits * count / 8, row = W * texel;
                hipChannelFormatDesc desc = hipCreateChannelDesc(bits, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 2 ? bits : 0,
                                                                 is_signed ? hipChannelFormatKindSigned : hipChannelFormatKindUnsigned);
                std::vector<unsigned char> in(row * H), out(row * H);
                for (size_t i = 0; i < in.size(); i++)
                    in[i] = (unsigned char)(i * 89 + (i >> 3));
                hipArray_t array[2];
                hipSurfaceObject_t surface[2];
                for (int k = 0; k < 2; k++) {
                    hipResourceDesc r = {};
                    CHECK(hipMallocArray(&array[k], &desc, W, H, hipArraySurfaceLoadStore));
                    r.resType = hipResourceTypeArray;
                    r.res.array.array = array[k];
                    CHECK(hipCreateSurfaceObject(&surface[k], &r));
                }
                Buffer<uint4> channels(W * H);
                CHECK(hipMemcpy2DToArray(array[0], 0, 0, in.data(), row, row, H, hipMemcpyHostToDevice));
                copy_channels<<<1, dim3(W, H)>>>(surface[0], surface[1], channels.device);
                CHECK(hipMemcpy2DFromArray(out.data(), row, array[1], 0, 0, row, H, hipMemcpyDeviceToHost));
                EXPECT(in == out, "%d bits, %d channels, signed %d: a copy differs", bits, count, is_signed);
                std::vector<uint4> got = channels.host();
                for (int i = 0; i < W * H; i++)
                    for (int c = 0; c < 4; c++) {
                        unsigned want = channel(&in[i * texel], bits, count, is_signed, c), is = (&got[i].x)[c];
                        EXPECT(is == want, "%d bits, %d channels, signed %d, texel %d, channel %d: %x, not %x", bits, count, is_signed, i,
                               c, is, want);
                    }
                for (int k = 0; k < 2; k++) {
                    CHECK(hipDestroySurfaceObject(surface[k]));
                    CHECK(hipFreeArray(array[k]));
                }
            }
}

int main() {
    std::vector<float> image(W * H), got(W * H);
    for (int i = 0; i < W * H; i++)
        image[i] = (float)((i * 37) % 101);
    hipArray_t array = make_array(image, make_hipExtent(W, H, 0), hipArraySurfaceLoadStore);
    modes(image, array);
    others(image);
    normalised_integers();
    volumes();
    formats();
    CHECK(hipBindTextureToArray(reference, array));
    Buffer<float> out(W * H);
    read_reference<<<1, dim3(W, H)>>>(out.device);
    got = out.host();
    EXPECT(got == image, "a texture reference reads something else");
    CHECK(hipUnbindTexture(reference));
    // surfaces
    hipArray_t other = make_array(std::vector<float>(W * H), make_hipExtent(W, H, 0), hipArraySurfaceLoadStore);
    hipResourceDesc r = {};
    hipSurfaceObject_t from, to;
    r.resType = hipResourceTypeArray;
    r.res.array.array = array;
    CHECK(hipCreateSurfaceObject(&from, &r));
    r.res.array.array = other;
    CHECK(hipCreateSurfaceObject(&to, &r));
    copy_surface<<<1, dim3(W, H)>>>(from, to);
    CHECK(hipMemcpy2DFromArray(got.data(), W * 4, other, 0, 0, W * 4, H, hipMemcpyDeviceToHost));
    for (int i = 0; i < W * H; i++)
        EXPECT(got[i] == image[i] + 1, "surface %d: %g, not %g", i, got[i], image[i] + 1);
    CHECK(hipDestroySurfaceObject(from));
    CHECK(hipDestroySurfaceObject(to));
    CHECK(hipFreeArray(array));
    CHECK(hipFreeArray(other));
    return finish();
}
