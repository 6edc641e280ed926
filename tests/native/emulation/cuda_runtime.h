// Nothing of CUDA: the emulated driver.hpp, included before, has what the kernels need.
#pragma once
