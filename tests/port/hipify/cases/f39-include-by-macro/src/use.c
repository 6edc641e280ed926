#include "config.h"
#include DRIVER_HEADER
#include RUNTIME_HEADER
int ready(void) { return cuInit(0); }
