#include "support/data_files.h"

#include <stdlib.h>
#include <zlib.h>

#include <fstream>

namespace ridgeline::testing {

Bytes file_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void FileTest::SetUp() {
  std::string name = (std::filesystem::temp_directory_path() / "ridgeline-data-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  folder_ = name;
}

std::filesystem::path FileTest::write(const std::string& name, const Bytes& bytes) const {
  std::filesystem::path path = folder_ / name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

Bytes gzip(const Bytes& plain) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, plain.size()) + 32);
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Bytes idx(const std::vector<std::uint32_t>& dims, const Bytes& data, std::uint8_t type) {
  Bytes bytes = {0, 0, type, static_cast<std::uint8_t>(dims.size())};
  for (const std::uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<std::uint8_t>(dim >> shift));
    }
  }
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

Bytes ramp(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::uint8_t>(i * 37 + i / 251);
  return bytes;
}

std::string csv_text(std::int64_t side, const std::vector<int>& labels, bool header) {
  std::string text;
  if (header) {
    text = "label";
    for (std::int64_t i = 0; i < side * side; ++i) text += fmt::format(",pixel{}", i);
    text += '\n';
  }
  for (std::size_t row = 0; row < labels.size(); ++row) {
    text += std::to_string(labels[row]);
    for (std::int64_t i = 0; i < side * side; ++i) {
      text += fmt::format(",{}", (static_cast<std::int64_t>(row) * 97 + i * 31) % 256);
    }
    text += '\n';
  }
  return text;
}

void expect_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is missing in: " << text;
  }
}

}  // namespace ridgeline::testing
