#include "call.h"
host_fn a;
stream_fn b = done;
