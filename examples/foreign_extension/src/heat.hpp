#pragma once

#include <cuda_runtime_api.h>

namespace heatgrid {

// One explicit step of the heat equation on a grid of rows × columns floats in device memory. Cells
// at the rim keep their value; each inner cell moves by `rate` times the sum of its differences to
// its four neighbours. `rate` is stable up to 0.25.
cudaError_t step(const float* from, float* to, int rows, int columns, float rate,
                 cudaStream_t stream);

}  // namespace heatgrid
