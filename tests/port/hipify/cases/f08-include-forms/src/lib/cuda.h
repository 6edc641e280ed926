inline int own_cuda() { return 1; }
