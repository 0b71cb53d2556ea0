// rope: bias and rotary embedding (arXiv:2104.09864) of queries or keys, in place.
//
// x         f16 [nt, heads, width], `stride` elements between tokens
// bias      f32 [heads * width] added first, or null
// turns     f32 [positions, pairs, 2]: cosine and sine of each position, made once on the host in float64
// state     int32: state[0] is the position of the first token, read on the device so that a graph can be replayed
// interleaved: pairs (0, 1), (2, 3), ... ; otherwise (0, pairs), (1, pairs + 1), ...
//
// Variants tried
//   one thread a pair, table of cosines   current: sincosf of large angles costs more than the read
#include "common.cuh"

KERNEL(256) minfer_rope(f16* x, const float* bias, const float2* turns, const int* state, int nt, int heads, int width, int stride,
                        int pairs, int interleaved) {
    const int half = width / 2;  // threads a head: pairs that turn, then pairs that only take the bias
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= (long long)nt * heads * half) return;
    const int p = (int)(index % half), head = (int)(index / half % heads), token = (int)(index / half / heads);
    f16* row = x + (long long)token * stride + head * width;
    const float* add = bias ? bias + head * width : nullptr;
    int i, j;
    if (p < pairs) {
        i = interleaved ? 2 * p : p;
        j = interleaved ? 2 * p + 1 : p + pairs;
    } else {
        i = 2 * p;
        j = 2 * p + 1;
    }
    float a = f16_to_f32(row[i]), b = f16_to_f32(row[j]);
    if (add) {
        a += add[i];
        b += add[j];
    }
    if (p < pairs) {
        const float2 turn = turns[(long long)(state[0] + token) * pairs + p];
        const float turned = a * turn.x - b * turn.y;
        b = a * turn.y + b * turn.x;
        a = turned;
    }
    row[i] = f32_to_f16(a);
    row[j] = f32_to_f16(b);
}
