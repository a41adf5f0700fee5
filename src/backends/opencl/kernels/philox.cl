// Philox4x32-10 as in base/philox.h.

#define STREAM_AUGMENTATION 2
#define STREAM_DROPOUT 3

ulong stream_key(ulong seed, ulong stream) { return seed ^ ((stream + 1) * 0x9E3779B97F4A7C15UL); }

uint4 philox(ulong key, ulong low, ulong high) {
  uint k0 = (uint)key, k1 = (uint)(key >> 32);
  uint4 c = (uint4)((uint)low, (uint)(low >> 32), (uint)high, (uint)(high >> 32));
  for (int round = 0; round < 10; ++round) {
    const uint a = 0xD2511F53u, b = 0xCD9E8D57u;
    c = (uint4)(mul_hi(b, c.z) ^ c.y ^ k0, b * c.z, mul_hi(a, c.x) ^ c.w ^ k1, a * c.x);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}
