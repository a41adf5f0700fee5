#include "support/weight_files.h"

#include <zlib.h>

#include <cstring>

namespace ridgeline::testing {
namespace {

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

Bytes deflate_raw(const Bytes& plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
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

}  // namespace

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

Bytes little_endian(std::uint64_t number, int count) {
  Bytes bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(number >> 8 * i));
  return bytes;
}

Bytes safetensors_bytes(const std::string& header, const Bytes& data) {
  Bytes bytes = little_endian(header.size(), 8);
  append(bytes, bytes_of(header));
  append(bytes, data);
  return bytes;
}

Bytes zip_bytes(const std::vector<ZipPart>& parts) {
  Bytes file, directory;
  for (const ZipPart& part : parts) {
    const Bytes packed = part.deflated ? deflate_raw(part.contents) : part.contents;
    const auto checksum = static_cast<std::uint32_t>(
        crc32(0, part.contents.data(), static_cast<uInt>(part.contents.size())));
    // Version, flags, method, time, date, checksum, sizes, length of name and extra part.
    Bytes common = {20, 0, 0, 0, static_cast<std::uint8_t>(part.deflated ? 8 : 0), 0, 0, 0, 0, 0};
    append(common, little_endian(checksum, 4));
    append(common, little_endian(packed.size(), 4));
    append(common, little_endian(part.contents.size(), 4));
    append(common, little_endian(part.name.size(), 2));
    append(common, little_endian(0, 2));
    append(directory, bytes_of("PK\x01\x02"));
    append(directory, little_endian(20, 2));
    append(directory, common);
    append(directory, Bytes(10, 0));
    append(directory, little_endian(file.size(), 4));
    append(directory, bytes_of(part.name));
    append(file, bytes_of("PK\x03\x04"));
    append(file, common);
    append(file, bytes_of(part.name));
    append(file, packed);
  }
  const std::size_t start = file.size();
  append(file, directory);
  append(file, bytes_of("PK\x05\x06"));
  append(file, Bytes(4, 0));
  append(file, little_endian(parts.size(), 2));
  append(file, little_endian(parts.size(), 2));
  append(file, little_endian(directory.size(), 4));
  append(file, little_endian(start, 4));
  append(file, Bytes(2, 0));
  return file;
}

std::string pickled_text(std::string_view text) {
  const Bytes size = little_endian(text.size(), 4);
  return "X" + std::string(size.begin(), size.end()) + std::string(text);
}

std::string pickled_number(std::int64_t number) {
  const Bytes bytes = little_endian(static_cast<std::uint64_t>(number), 8);
  return "\x8A\x08" + std::string(bytes.begin(), bytes.end());
}

std::string pickled_tuple(const std::vector<std::int64_t>& numbers) {
  std::string text = "(";
  for (const std::int64_t number : numbers) text += pickled_number(number);
  return text + "t";
}

std::string pickled_tensor(const PickledTensor& tensor) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled_text("storage") + "ctorch\n" +
         tensor.storage_type + "\n" + pickled_text(tensor.key) + pickled_text("cpu") +
         pickled_number(tensor.storage_elements) + "tQ" + pickled_number(tensor.offset) +
         pickled_tuple(tensor.dims) + pickled_tuple(tensor.strides) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

std::string pickled_dict(const std::vector<PickledTensor>& tensors) {
  std::string text = "\x80\x02}(";
  for (const PickledTensor& tensor : tensors) {
    text += pickled_text(tensor.name) + pickled_tensor(tensor);
  }
  return text + "u.";
}

Bytes torch_zip(const std::string& pickle,
                const std::vector<std::pair<std::string, Bytes>>& storages, bool deflated) {
  std::vector<ZipPart> parts = {{"archive/data.pkl", bytes_of(pickle), deflated}};
  for (const auto& [key, contents] : storages) {
    parts.push_back({"archive/data/" + key, contents, deflated});
  }
  parts.push_back({"archive/version", bytes_of("3\n"), false});
  return zip_bytes(parts);
}

Bytes torch_legacy(const std::string& pickle,
                   const std::vector<std::pair<std::string, Bytes>>& storages) {
  Bytes file = {0x80, 2,    0x8A, 0x0A, 0x6C, 0xFC, 0x9C, 0x46,
                0xF9, 0x20, 0x6A, 0xA8, 0x50, 0x19, '.'};
  append(file, {0x80, 2, 'M', 0xE9, 0x03, '.'});
  append(file, bytes_of("\x80\x02}" + pickled_text("little_endian") + "\x88s."));
  append(file, bytes_of(pickle));
  std::string keys = "\x80\x02](";
  for (const auto& [key, contents] : storages) keys += pickled_text(key);
  append(file, bytes_of(keys + "e."));
  for (const auto& [key, contents] : storages) {
    append(file, little_endian(contents.size() / sizeof(float), 8));
    append(file, contents);
  }
  return file;
}

Bytes float_bytes(const std::vector<float>& values) {
  Bytes bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace ridgeline::testing
