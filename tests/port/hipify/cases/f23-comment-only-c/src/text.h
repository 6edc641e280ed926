#ifndef TEXT_H
#define TEXT_H
/* __shared__ memory is asked for by __device__ code. */
int text(void);
#endif
