cuuint64_t pages(void);
extern cudaEvent_t