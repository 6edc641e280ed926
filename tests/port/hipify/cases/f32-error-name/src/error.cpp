#include "error.h"
const char* of(CUresult r) { return name_of(r); }
