inline int setting() { return 3; }
