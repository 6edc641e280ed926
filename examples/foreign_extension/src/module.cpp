#include <cuda_runtime_api.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "heat.hpp"

namespace nb = nanobind;

namespace {

using Grid = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

class Buffer {
 public:
  explicit Buffer(std::size_t bytes) { check(cudaMalloc(&data_, bytes), "device memory"); }
  ~Buffer() { (void)cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  [[nodiscard]] float* data() const { return static_cast<float*>(data_); }

 private:
  void* data_ = nullptr;
};

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
  ~Stream() { (void)cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

int device_count() {
  int count = 0;  // left as it is by the call when there is no driver
  (void)cudaGetDeviceCount(&count);
  return count;
}

int runtime_version() {
  int version = 0;
  check(cudaRuntimeGetVersion(&version), "runtime version");
  return version;
}

void spread(const Grid& grid, int steps, float rate) {
  const int rows = static_cast<int>(grid.shape(0));
  const int columns = static_cast<int>(grid.shape(1));
  const std::size_t bytes = grid.nbytes();
  const nb::gil_scoped_release released;
  const Stream stream;
  Buffer from(bytes);
  Buffer to(bytes);
  check(cudaMemcpyAsync(from.data(), grid.data(), bytes, cudaMemcpyHostToDevice, stream.get()),
        "copy to the device");
  float* here = from.data();
  float* next = to.data();
  for (int done = 0; done < steps; ++done) {
    check(heatgrid::step(here, next, rows, columns, rate, stream.get()), "step");
    std::swap(here, next);
  }
  check(cudaMemcpyAsync(grid.data(), here, bytes, cudaMemcpyDeviceToHost, stream.get()),
        "copy from the device");
  check(cudaStreamSynchronize(stream.get()), "wait");
}

}  // namespace

NB_MODULE(_heatgrid, m) {
  m.def("device_count", &device_count, "GPUs that the runtime sees; 0 without a driver.");
  m.def("runtime_version", &runtime_version, "The version number of the GPU runtime.");
  m.def("spread", &spread, nb::arg("grid").noconvert(), nb::arg("steps"), nb::arg("rate") = 0.2F,
        "Let heat spread over a grid of float32 for some steps, in place. Raises RuntimeError with "
        "the runtime's words where it fails.");
}
