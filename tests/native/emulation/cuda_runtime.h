// Nothing of CUDA: the emulation has what the kernels need.
#pragma once

#include "driver.hpp"
