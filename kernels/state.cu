// state: what changes between two replays of one CUDA graph, kept in device memory where the kernels read it.
//
// state     int32 [1]: the position of the first token
#include "common.cuh"

KERNEL(32) minfer_fill_position(int* state, int position) {
    if (threadIdx.x == 0) state[0] = position;
}
