inline int helper() { return 2; }
