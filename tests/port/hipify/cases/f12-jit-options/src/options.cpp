#include <nvrtc.h>
#include <string>
#include <vector>

nvrtcResult compile(nvrtcProgram p, int major, int minor) {
  std::string arch = "-arch=sm_" + std::to_string(major * 10 + minor);
  std::vector<const char*> options{arch.c_str(), "--use_fast_math", "-std=c++17", "--fmad=false"};
  return nvrtcCompileProgram(p, static_cast<int>(options.size()), options.data());
}
