// What every kernel file begins with. Launch (launch.h) passes a buffer as its object and an offset.

#define BUFFER(name) __global char *name##_base, const ulong name##_offset
#define ROWS(name) BUFFER(name), const long name##_stride
#define POINTER(type, name) __global type *name = (__global type *)(name##_base + name##_offset)

// Images and what flows between layers are stored as NUMBER: 16 bits with -DHALF, else 32. All
// arithmetic is in float. To load and store halves is part of OpenCL 1.2, to compute with them is an
// extension that no kernel asks for.
#ifdef HALF
#define NUMBER half
#define READ(from, at) vload_half((size_t)(at), from)
#define WRITE(value, to, at) vstore_half(value, (size_t)(at), to)
// Vectors of halves go through a copy at their own boundary: PoCL 3.1 takes them all to lie at one.
#define HALF_VECTORS(count)                                                       \
  inline float##count read_half##count(__global const half *from) {               \
    ushort copy[count] __attribute__((aligned(32)));                              \
    vstore##count(vload##count(0, (__global const ushort *)from), 0, copy);       \
    return vload_half##count(0, (const half *)copy);                              \
  }                                                                               \
  inline void write_half##count(float##count value, __global half *to) {          \
    ushort copy[count] __attribute__((aligned(32)));                              \
    vstore_half##count(value, 0, (half *)copy);                                   \
    vstore##count(vload##count(0, copy), 0, (__global ushort *)to);               \
  }
HALF_VECTORS(4)
HALF_VECTORS(8)
HALF_VECTORS(16)
#define READ16(from) read_half16(from)
#define WRITE16(value, to) write_half16(value, to)
#else
#define NUMBER float
#define READ(from, at) (from)[at]
#define WRITE(value, to, at) (to)[at] = (value)
#define READ16(from) vload16(0, from)
#define WRITE16(value, to) vstore16(value, 0, to)
#endif
