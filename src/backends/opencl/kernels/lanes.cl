// LANES neighbouring channels at once: a vector where there are several. CPUs fill their vectors
// with what lies in one work-item; graphics processors make theirs of work-items, with one lane.
#include "kernels/prelude.cl"

#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)

#if LANES == 1
#define FLOATS float
#define INTS int
#define LOAD(from) (*(from))
#define STORE(value, to) (*(to) = (value))
#define READ_LANES(from) READ(from, 0)
#define WRITE_LANES(value, to) WRITE(value, to, 0)
// All bits where a comparison holds, as vectors have it.
#define MASK(comparison) (-(comparison))
#define SELECT(other, value, mask) ((mask) ? (value) : (other))
#define INTS_OF(value) ((int)(value))
#define UCHARS_OF(value) ((uchar)(value))
#else
#define FLOATS JOIN(float, LANES)
#define INTS JOIN(int, LANES)
#define LOAD(from) JOIN(vload, LANES)(0, from)
#define STORE(value, to) JOIN(vstore, LANES)(value, 0, to)
#ifdef HALF
#define READ_LANES(from) JOIN(read_half, LANES)(from)
#define WRITE_LANES(value, to) JOIN(write_half, LANES)(value, to)
#else
#define READ_LANES(from) LOAD(from)
#define WRITE_LANES(value, to) STORE(value, to)
#endif
#define MASK(comparison) (comparison)
#define SELECT(other, value, mask) select(other, value, mask)
#define INTS_OF(value) JOIN(convert_int, LANES)(value)
#define UCHARS_OF(value) JOIN(convert_uchar, LANES)(value)
#endif
