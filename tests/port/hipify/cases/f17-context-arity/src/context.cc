#include <cuda.h>

class Guard {
 public:
  explicit Guard(CUdevice d) {
    CUctxCreateParams params{};
    ::cuCtxCreate(
        &context_,
        &params,
        CU_CTX_MAP_HOST,
        d);
  }
  ~Guard() { ::cuCtxDestroy(context_); }
  int pop() { CUcontext old; return ::cuCtxPopCurrent(&old); }

 private:
  CUcontext context_ = nullptr;
};
