// f64 without cl_khr_fp64, which many GPUs lack: StepState and metrics' totals hold doubles, and
// here they are bits. Denormal numbers count as zero.

ulong double_of_float(float x) {
  const uint bits = as_uint(x);
  const ulong sign = (ulong)(bits >> 31) << 63, exponent = (bits >> 23) & 255u;
  const ulong mantissa = (ulong)(bits & 0x7FFFFFu) << 29;
  if (exponent == 0) return sign;
  if (exponent == 255) return sign | 0x7FF0000000000000UL | mantissa;
  return sign | (exponent + 896) << 52 | mantissa;
}

float float_of_double(ulong bits) {
  const uint sign = (uint)(bits >> 63) << 31;
  const int exponent = (int)((bits >> 52) & 0x7FF) - 896;
  const ulong mantissa = bits & 0xFFFFFFFFFFFFFUL;
  if (exponent == 1151) return as_float(sign | 0x7F800000u | (mantissa != 0 ? 1u : 0u));
  if (exponent <= 0) return as_float(sign);
  if (exponent >= 255) return as_float(sign | 0x7F800000u);
  uint kept = (uint)exponent << 23 | (uint)(mantissa >> 29);
  const uint rest = (uint)mantissa & 0x1FFFFFFFu;
  if (rest > 0x10000000u || (rest == 0x10000000u && (kept & 1u) != 0)) ++kept;
  return as_float(sign | kept);
}

// A mantissa with 3 bits behind the last place, of which the lowest tells whether more follow.
ulong packed_double(ulong sign, long exponent, ulong mantissa) {
  if (mantissa == 0) return 0;
  while (mantissa < (1UL << 55)) {
    mantissa <<= 1;
    --exponent;
  }
  while (mantissa >= (1UL << 56)) {
    mantissa = mantissa >> 1 | (mantissa & 1);
    ++exponent;
  }
  const ulong rest = mantissa & 7;
  mantissa >>= 3;
  if (rest > 4 || (rest == 4 && (mantissa & 1) != 0)) ++mantissa;
  if (exponent <= 0) return sign;
  if (exponent >= 2046) return sign | 0x7FF0000000000000UL;
  return sign | (((ulong)exponent << 52) + (mantissa - (1UL << 52)));
}

ulong add_doubles(ulong a, ulong b) {
  const ulong magnitude = 0x7FFFFFFFFFFFFFFFUL, infinity = 0x7FF0000000000000UL;
  if ((a & magnitude) < (b & magnitude)) {
    const ulong larger = b;
    b = a;
    a = larger;
  }
  const long exponent_a = (long)((a >> 52) & 0x7FF), exponent_b = (long)((b >> 52) & 0x7FF);
  if ((a & magnitude) >= infinity || exponent_b == 0) return a;
  const ulong mantissa_a = ((a & 0xFFFFFFFFFFFFFUL) | 1UL << 52) << 3;
  ulong mantissa_b = ((b & 0xFFFFFFFFFFFFFUL) | 1UL << 52) << 3;
  const long shift = exponent_a - exponent_b;
  if (shift > 55) return a;
  const ulong lost = mantissa_b & ((1UL << shift) - 1);
  mantissa_b = mantissa_b >> shift | (lost != 0 ? 1 : 0);
  const bool same = (a ^ b) >> 63 == 0;
  return packed_double(a & ~magnitude, exponent_a,
                       same ? mantissa_a + mantissa_b : mantissa_a - mantissa_b);
}

// REQUIRES: finite.
ulong multiply_doubles(ulong a, ulong b) {
  const long exponent_a = (long)((a >> 52) & 0x7FF), exponent_b = (long)((b >> 52) & 0x7FF);
  const ulong sign = (a ^ b) & 0x8000000000000000UL;
  if (exponent_a == 0 || exponent_b == 0) return sign;
  const ulong x = ((a & 0xFFFFFFFFFFFFFUL) | 1UL << 52) << 11;
  const ulong y = ((b & 0xFFFFFFFFFFFFFUL) | 1UL << 52) << 11;
  const ulong high = mul_hi(x, y), low = x * y;
  return packed_double(sign, exponent_a + exponent_b - 1023 - 7, high | (low != 0 ? 1 : 0));
}
