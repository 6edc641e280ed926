#include <cuda_runtime.h>

#include "heat.hpp"

namespace {

constexpr int k_tile = 16;

__global__ void step_kernel(const float* from, float* to, int rows, int columns, float rate) {
  // The tile with a rim of one cell: what neighbouring threads share is read once.
  __shared__ float tile[k_tile + 2][k_tile + 2];
  const int row = blockIdx.y * k_tile + threadIdx.y;
  const int column = blockIdx.x * k_tile + threadIdx.x;
  const int y = threadIdx.y + 1;
  const int x = threadIdx.x + 1;
  const auto load = [&](int r, int c) {
    return r >= 0 && r < rows && c >= 0 && c < columns ? from[r * columns + c] : 0.0F;
  };
  tile[y][x] = load(row, column);
  if (threadIdx.y == 0) tile[0][x] = load(row - 1, column);
  if (threadIdx.y == k_tile - 1) tile[k_tile + 1][x] = load(row + 1, column);
  if (threadIdx.x == 0) tile[y][0] = load(row, column - 1);
  if (threadIdx.x == k_tile - 1) tile[y][k_tile + 1] = load(row, column + 1);
  __syncthreads();
  if (row >= rows || column >= columns) return;
  const bool rim = row == 0 || column == 0 || row == rows - 1 || column == columns - 1;
  const float here = tile[y][x];
  const float around = tile[y - 1][x] + tile[y + 1][x] + tile[y][x - 1] + tile[y][x + 1];
  to[row * columns + column] = rim ? here : here + rate * (around - 4.0F * here);
}

}  // namespace

namespace heatgrid {

cudaError_t step(const float* from, float* to, int rows, int columns, float rate,
                 cudaStream_t stream) {
  const dim3 threads(k_tile, k_tile);
  const dim3 blocks((columns + k_tile - 1) / k_tile, (rows + k_tile - 1) / k_tile);
  step_kernel<<<blocks, threads, 0, stream>>>(from, to, rows, columns, rate);
  return cudaGetLastError();
}

}  // namespace heatgrid
