#include "base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/error.h"

namespace ridgeline {

std::string gzipped(std::string_view bytes) {
  constexpr int kGzip = 16;        // added to the window's size: a gzip header, without a time
  constexpr int kMemoryLevel = 8;  // zlib's default
  z_stream stream{};
  ensure(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, kMemoryLevel,
                      Z_DEFAULT_STRATEGY) == Z_OK,
         "zlib could not start to compress");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);

  std::string packed;
  std::string room(std::size_t{1} << 16, '\0');
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    // zlib counts in 32 bits.
    constexpr std::size_t kPiece = std::numeric_limits<uInt>::max();
    if (stream.avail_in == 0) {
      const std::string_view piece = bytes.substr(0, kPiece);
      // It does not write to what it reads; its type only lacks the const.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream.avail_in = static_cast<uInt>(piece.size());
      bytes.remove_prefix(piece.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(room.size());
    status = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    ensure(status == Z_OK || status == Z_STREAM_END, "zlib could not compress: status {}", status);
    packed.append(room, 0, room.size() - stream.avail_out);
  }
  return packed;
}

}  // namespace ridgeline
