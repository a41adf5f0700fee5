// What a device is asked to record and replay before recorded steps are trusted.

__kernel void put(__global int *dst, const int at, const int number) { dst[at] = number; }
