#include "data/digest.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"

namespace ridgeline {
namespace {

using State = std::array<std::uint32_t, 8>;

std::uint32_t little(const std::uint8_t* b) {
  return std::uint32_t{b[0]} | std::uint32_t{b[1]} << 8 | std::uint32_t{b[2]} << 16 |
         std::uint32_t{b[3]} << 24;
}

std::uint32_t big(const std::uint8_t* b) {
  return std::uint32_t{b[3]} | std::uint32_t{b[2]} << 8 | std::uint32_t{b[1]} << 16 |
         std::uint32_t{b[0]} << 24;
}

// The standard's constants: floor(2^32 |sin i|) for i from 1 on.
std::array<std::uint32_t, 64> md5_constants() {
  std::array<std::uint32_t, 64> constants{};
  for (std::size_t i = 0; i < constants.size(); ++i) {
    constants[i] = static_cast<std::uint32_t>(
        std::floor(0x1p32 * std::abs(std::sin(static_cast<double>(i + 1)))));
  }
  return constants;
}

void md5_block(State& state, const std::uint8_t* bytes) {
  static const std::array<std::uint32_t, 64> constants = md5_constants();
  static constexpr int kShifts[4][4] = {
      {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t round = i / 16;
    std::uint32_t mixed = 0;
    std::size_t word = 0;
    switch (round) {
      case 0:
        mixed = (b & c) | (~b & d);
        word = i;
        break;
      case 1:
        mixed = (d & b) | (~d & c);
        word = (5 * i + 1) % 16;
        break;
      case 2:
        mixed = b ^ c ^ d;
        word = (3 * i + 5) % 16;
        break;
      default:
        mixed = c ^ (b | ~d);
        word = 7 * i % 16;
        break;
    }
    const std::uint32_t sum = a + mixed + constants[i] + little(bytes + 4 * word);
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kShifts[round][i % 4]);
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
}

constexpr std::array<std::uint32_t, 64> kSha256 = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void sha256_block(State& state, const std::uint8_t* bytes) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) w[i] = big(bytes + 4 * i);
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t x = w[i - 15], y = w[i - 2];
    const std::uint32_t s0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3);
    const std::uint32_t s1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kSha256[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const State after = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] += after[i];
}

}  // namespace

Digest::Digest(DigestKind kind) : kind_(kind) {
  state_ = kind == DigestKind::md5 ? State{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}
                                   : State{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
}

void Digest::block(const std::uint8_t* bytes) {
  if (kind_ == DigestKind::md5) {
    md5_block(state_, bytes);
  } else {
    sha256_block(state_, bytes);
  }
}

void Digest::add(std::span<const std::uint8_t> bytes) {
  std::size_t filled = bytes_ % 64;
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    if (filled == 0 && bytes.size() >= 64) {
      block(bytes.data());
      bytes = bytes.subspan(64);
      continue;
    }
    const std::size_t taken = std::min(64 - filled, bytes.size());
    std::copy_n(bytes.begin(), taken, pending_.begin() + static_cast<std::ptrdiff_t>(filled));
    bytes = bytes.subspan(taken);
    filled += taken;
    if (filled == 64) {
      block(pending_.data());
      filled = 0;
    }
  }
}

std::string Digest::text() {
  const std::uint64_t bits = 8 * bytes_;
  std::vector<std::uint8_t> end = {0x80};
  while ((bytes_ + end.size()) % 64 != 56) end.push_back(0);
  for (int i = 0; i < 8; ++i) {
    const int shift = kind_ == DigestKind::md5 ? 8 * i : 56 - 8 * i;
    end.push_back(static_cast<std::uint8_t>(bits >> shift));
  }
  add(end);
  std::string text;
  const std::size_t words = kind_ == DigestKind::md5 ? 4 : 8;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint32_t word = kind_ == DigestKind::md5 ? __builtin_bswap32(state_[i]) : state_[i];
    text += fmt::format("{:08x}", word);
  }
  return text;
}

std::string digest_of(DigestKind kind, std::span<const std::uint8_t> bytes) {
  Digest digest(kind);
  digest.add(bytes);
  return digest.text();
}

std::string digest_of_file(DigestKind kind, const std::filesystem::path& path) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) bad_input("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  Digest digest(kind);
  std::vector<std::uint8_t> buffer(std::size_t{1} << 20);
  for (;;) {
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get());
    if (got == 0) break;
    digest.add(std::span(buffer).first(got));
  }
  if (std::ferror(file.get()) != 0) {
    bad_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  return digest.text();
}

}  // namespace ridgeline
