#include "support/fuzz_targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

#include "audit/read/read.h"
#include "base/error.h"
#include "data/csv.h"
#include "data/idx.h"
#include "data/image_decoder.h"
#include "data/image_job.h"
#include "data/image_source.h"
#include "data/npy.h"
#include "data/pack.h"
#include "data/pack_format.h"
#include "onnx/network.h"
#include "support/images.h"
#include "support/onnx_models.h"
#include "support/weight_files.h"
#include "train/pickle.h"
#include "train/weight_file.h"

namespace ridgeline::testing {
namespace {

// A file that lies in memory alone.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes) : file_(memfd_create("fuzz", 0)) {
    if (file_ < 0) throw std::runtime_error("memfd_create");
    while (!bytes.empty()) {
      const ssize_t count = write(file_, bytes.data(), bytes.size());
      if (count <= 0) throw std::runtime_error("write");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::filesystem::path path() const {
    return "/proc/self/fd/" + std::to_string(file_);
  }

 private:
  int file_;
};

void read_images(const std::filesystem::path& path) { (void)read_idx(path, 3); }
void read_tensor(const std::filesystem::path& path) { (void)read_npy(path); }
void read_results(const std::filesystem::path& path) { (void)audit::read_table(path); }
void read_digits(const std::filesystem::path& path) { (void)read_csv(path, 10); }

// Looks at all that was read, so that a view beyond the file is found out.
void read_weights(const std::filesystem::path& path) {
  const WeightFile file = open_weights(path);
  for (const WeightTensor& tensor : file.tensors) {
    if (is_real(tensor.type)) (void)tensor.to_float();
  }
}

// Reads the file and builds its network.
void read_network(const std::filesystem::path& path) { (void)onnx::survey_file(path); }

// A checksum guards the pickle in a zip file; here mutations reach it.
void read_bare_pickle(const std::filesystem::path& path) {
  const MappedFile file(path);
  (void)read_pickle(file.bytes(), path.string());
}

void read_image(const std::filesystem::path& path) {
  std::vector<std::uint8_t> bytes;
  read_bytes(path, bytes);
  ImageJobMaker maker;
  if (maker.make({.bytes = bytes}, {.target = {32, 32}}, ImageForm::blocks)) {
    std::vector<std::uint8_t> parts(maker.part_bytes());
    (void)maker.put(parts.data(), 0);
  }
  ImageDecoder decoder;
  (void)check_image(decoder, bytes, path.string());
}

// Checksums guard a pack's header and index; here mutations reach what they guard.
void read_pack_index(const std::filesystem::path& path) {
  namespace format = pack_format;
  std::vector<std::uint8_t> bytes;
  read_bytes(path, bytes);
  if (bytes.size() >= format::kHeaderBytes) {
    const auto offset = format::get<std::uint64_t>(bytes, format::Field::index_offset);
    const auto length = format::get<std::uint64_t>(bytes, format::Field::index_bytes);
    if (offset <= bytes.size() && length <= bytes.size() - offset) {
      format::put(std::span(bytes), format::Field::index_checksum,
                  format::checksum(std::span(bytes).subspan(offset, length)));
    }
    format::put(std::span(bytes), format::kHeaderChecksum,
                format::checksum(std::span(bytes).first(format::kHeaderChecksum)));
  }
  (void)parse_pack(bytes, path.string());
}

std::vector<Bytes> jpeg_seeds() {
  const Bytes pixels = picture(24, 17);
  return {jpeg(pixels, 24, 17), jpeg(pixels, 24, 17, {.progressive = true, .orientation = 6}),
          jpeg(pixels, 24, 17, {.cmyk = true})};
}

std::vector<Bytes> png_seeds() {
  const Bytes pixels = picture(9, 7);
  return {png(pixels, 9, 7), png(pixels, 9, 7, {.palette = true, .interlaced = true}),
          png(pixels, 9, 7, {.channels = 2, .bits = 16})};
}

std::vector<Bytes> pack_seeds() {
  Split data;
  data.train.name = "seed";
  data.train.channels = data.test.channels = 1;
  data.train.height = data.test.height = data.train.width = data.test.width = 2;
  data.train.classes = data.test.classes = 2;
  data.train.class_names = {"cat", "dog"};
  data.train.labels = {0, 1};
  data.train.pixels = ramp(8);
  data.test.labels = {1};
  data.test.pixels = ramp(4);
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("seed-" + std::to_string(getpid()) + ".pack");
  (void)write_pack(data, path, {}, [](std::int64_t, std::int64_t) {});
  Bytes bytes;
  read_bytes(path, bytes);
  std::filesystem::remove(path);
  return {bytes};
}

std::vector<Bytes> idx_seeds() {
  const Bytes plain = idx({3, 4, 5}, ramp(60));
  return {plain, gzip(plain), idx({2}, ramp(2))};
}

std::vector<Bytes> npy_seeds() {
  const auto file = [](char version, const std::string& type, std::size_t bytes) {
    const std::string header =
        "{'descr': '" + type + "', 'fortran_order': False, 'shape': (2, 3), }\n";
    std::string text = std::string("\x93NUMPY") + version + '\0';
    text += static_cast<char>(header.size());
    text.append(version == '\1' ? 1 : 3, '\0');
    return bytes_of(text + header + std::string(bytes, '\7'));
  };
  return {file('\1', "<f4", 24), file('\2', "<f8", 48), file('\1', "|u1", 6)};
}

std::vector<Bytes> results_seeds() {
  return {bytes_of("# a\nmodel;time (ms)\n\"a \"\"b\";12,5\r\nresnet18;\"1\"\n"),
          bytes_of("{\"model\":\"a\",\"t\":1}\n{\"u\":{\"v\":2.5}}\n"),
          bytes_of("[{\"model\":\"a\",\"img/s\":650},{\"img/s\":\"1,107\"}]"),
          bytes_of("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"ts\":1,\"dur\":2}]}")};
}

std::vector<Bytes> csv_seeds() {
  return {bytes_of(csv_text(4, {1, 2, 9})), bytes_of(csv_text(2, {0, 3}, false)),
          gzip(bytes_of(csv_text(4, {1, 2, 9})))};
}

std::vector<Bytes> safetensors_seeds() {
  return {safetensors_bytes(R"({"__metadata__":{"format":"pt"},)"
                            R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
                            R"("b":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},)"
                            R"("c":{"dtype":"I64","shape":[],"data_offsets":[12,20]}})",
                            ramp(20)),
          safetensors_bytes("{}", {})};
}

std::string seed_pickle() {
  const PickledTensor whole{"a.weight", "0", 12, 0, {3, 4}, {4, 1}, "FloatStorage"};
  const PickledTensor turned{"b.weight", "0", 12, 0, {4, 3}, {1, 4}, "FloatStorage"};
  const PickledTensor part{"b.bias", "0", 12, 8, {4}, {1}, "FloatStorage"};
  return pickled_dict({whole, turned, part});
}

std::vector<Bytes> pickle_seeds() {
  return {bytes_of(seed_pickle()), bytes_of("\x80\x04}q\x01(" + pickled_text("epoch") + "K\x03" +
                                            pickled_text("list") + "](NNe" + pickled_text("pair") +
                                            "\x88\x89\x86\x94uh\x01"
                                            "0.")};
}

std::vector<Bytes> torch_zip_seeds() {
  const std::vector<std::pair<std::string, Bytes>> storages = {{"0", ramp(48)}};
  return {torch_zip(seed_pickle(), storages), torch_zip(seed_pickle(), storages, true)};
}

std::vector<Bytes> torch_legacy_seeds() { return {torch_legacy(seed_pickle(), {{"0", ramp(48)}})}; }

// Convolutions, norms and activations; then axes that change places, and sizes that are reckoned.
std::vector<Bytes> onnx_seeds() {
  OnnxMaker layers({3, 8, 8});
  std::string value =
      layers.conv("image", "a", {4, 3, 3, 3}, {attribute("pads", onnx::Dims(4, 1))});
  value = layers.node("Relu", {layers.norm(value, "b", 4)});
  const std::string six = layers.node(
      "Clip", {layers.node("Add", {value, layers.number(3)}), layers.number(0), layers.number(6)});
  value = layers.node("Mul", {value, layers.node("Div", {six, layers.number(6)})});
  value = layers.node("Pad", {value, layers.integers({0, 0, 1, 1, 0, 0, 1, 1})});
  value = layers.node("MaxPool", {value}, {attribute("kernel_shape", onnx::Dims{2, 2})});
  layers.classify(value, 4);

  OnnxMaker axes({3, 8, 8});
  const std::string body = axes.conv("image", "a", {6, 3, 1, 1});
  const std::string batch = axes.node("Gather", {axes.node("Shape", {body}), axes.integers({0})},
                                      {attribute("axis", std::int64_t{0})});
  const std::string cut = axes.node("Concat", {batch, axes.integers({2, 3, 8, 8})},
                                    {attribute("axis", std::int64_t{0})});
  value = axes.node("Reshape", {body, cut});
  value = axes.node("Transpose", {value}, {attribute("perm", onnx::Dims{0, 2, 1, 3, 4})});
  value = axes.node("Reshape", {value, axes.integers({-1, 6, 8, 8})});
  const auto parts =
      axes.nodes("Split", {value, axes.integers({2, 4})}, 2, {attribute("axis", std::int64_t{1})});
  value = axes.node("Concat", {parts[1], parts[0]}, {attribute("axis", std::int64_t{1})});
  value = axes.node("Transpose", {value}, {attribute("perm", onnx::Dims{0, 2, 3, 1})});
  value = axes.node("LayerNormalization",
                    {value, axes.weights("n.weight", {6}), axes.weights("n.bias", {6})});
  value = axes.node("MatMul", {value, axes.weights("m.weight", {6, 4})});
  value = axes.node("Transpose", {value}, {attribute("perm", onnx::Dims{0, 3, 1, 2})});
  axes.classify(value, 4);

  std::vector<Bytes> seeds;
  const OnnxFolder folder;
  for (OnnxMaker* maker : {&layers, &axes}) {
    read_bytes(maker->write(folder / "seed.onnx"), seeds.emplace_back());
  }
  return seeds;
}

// gzip reaches 1032 to 1, and buffers grow by doubling; archives may inflate 64 to 1.
// A JPEG byte may stand for 512 pixels of three or four numbers, at several stages.
constexpr std::array<FuzzTarget, 12> kTargets = {{
    {"idx", read_images, idx_seeds, 4000},
    {"csv", read_digits, csv_seeds, 4000},
    {"results", read_results, results_seeds, 1000},
    {"npy", read_tensor, npy_seeds, 4000},
    {"safetensors", read_weights, safetensors_seeds, 200},
    {"pickle", read_bare_pickle, pickle_seeds, 1000},
    {"torch_zip", read_weights, torch_zip_seeds, 1000},
    {"torch_legacy", read_weights, torch_legacy_seeds, 1000},
    {"jpeg", read_image, jpeg_seeds, 10000},
    {"png", read_image, png_seeds, 10000},
    {"pack", read_pack_index, pack_seeds, 1000},
    {"onnx", read_network, onnx_seeds, 4000},
}};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() { return kTargets; }

void run_target(const FuzzTarget& target, std::span<const std::uint8_t> bytes) {
  const MemoryFile file(bytes);
  try {
    target.read(file.path());
  } catch (const Error&) {
    // Refused, as it should be.
  }
}

}  // namespace ridgeline::testing
