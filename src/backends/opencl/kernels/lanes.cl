// LANES neighbouring channels at once: a vector where there are several. CPUs fill their vectors
// with what lies in one work-item; graphics processors make theirs of work-items, with one lane.
#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)

#if LANES == 1
#define FLOATS float
#define INTS int
#define LOAD(from) (*(from))
#define STORE(value, to) (*(to) = (value))
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
#define MASK(comparison) (comparison)
#define SELECT(other, value, mask) select(other, value, mask)
#define INTS_OF(value) JOIN(convert_int, LANES)(value)
#define UCHARS_OF(value) JOIN(convert_uchar, LANES)(value)
#endif
