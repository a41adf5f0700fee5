// What every kernel file begins with. Launch (launch.h) passes a buffer as its object and an offset.

#define BUFFER(name) __global char *name##_base, const ulong name##_offset
#define ROWS(name) BUFFER(name), const long name##_stride
#define POINTER(type, name) __global type *name = (__global type *)(name##_base + name##_offset)
