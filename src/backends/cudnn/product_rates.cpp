#include "backends/cudnn/product_rates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cudnn/executable.h"
#include "base/half.h"
#include "base/philox.h"

namespace ridgeline::cudnn {
namespace {

// dst (rows x columns) = src (rows x depth) * weights (columns x depth)^T, as a linear layer.
Product product_of(std::int64_t size, Precision precision) {
  Product product;
  const Image square{.n = size, .c = size, .h = 1, .w = 1, .stride = size};
  product.src = product.weights = product.dst = square;
  product.conv.kernel_h = product.conv.kernel_w = 1;
  product.dtype = image_type(precision);
  product.linear = true;
  product.tf32 = precision == Precision::tf32;
  return product;
}

template <typename T>
std::vector<std::byte> random_numbers(std::size_t count) {
  PhiloxSequence random(0, RandomStream::synthetic, 0);
  std::vector<std::byte> bytes(count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    reinterpret_cast<T*>(bytes.data())[i] = narrowed<T>(2.0 * random.uniform_double() - 1.0);
  }
  return bytes;
}

std::vector<std::byte> random_block(DType dtype) {
  constexpr std::size_t kNumbers = std::size_t{1} << 20;
  switch (dtype) {
    case DType::bf16:
      return random_numbers<BFloat16>(kNumbers);
    case DType::f16:
      return random_numbers<Float16>(kNumbers);
    default:
      return random_numbers<float>(kNumbers);
  }
}

// Two matrices full of random numbers and a third for their product: zeros would cost less energy,
// and the clock would be higher than any real work sees.
class Matrices {
 public:
  Matrices(Device& device, const Product& product) {
    const std::size_t bytes =
        static_cast<std::size_t>(product.src.pixels() * product.src.c) * size_of(product.dtype);
    const std::vector<std::byte> block = random_block(product.dtype);
    for (DeviceMemory& matrix : matrices_) {
      matrix = DeviceMemory(device, bytes);
      for (std::size_t at = 0; at < bytes; at += block.size()) {
        device.upload(matrix.data() + at, block.data(), std::min(block.size(), bytes - at));
      }
    }
    device.synchronize();
  }
  [[nodiscard]] Operands operands() const {
    return {matrices_[0].data(), matrices_[1].data(), nullptr, matrices_[2].data()};
  }

 private:
  DeviceMemory matrices_[3];
};

// An algorithm of the library, ready to be timed.
class Trial {
 public:
  Trial(Device& device, std::shared_ptr<const Executable> executable, const Operands& operands)
      : device_(device),
        executable_(std::move(executable)),
        operands_(operands),
        workspace_(device, std::max<std::size_t>(executable_->workspace_bytes, 1)) {}

  [[nodiscard]] double seconds(std::int64_t runs) const {
    return device_.time([&] {
      for (std::int64_t run = 0; run < runs; ++run) {
        executable_->execute(operands_, workspace_.data(), static_cast<Stream>(device_.queue()));
      }
    });
  }

 private:
  Device& device_;
  std::shared_ptr<const Executable> executable_;
  Operands operands_;
  DeviceMemory workspace_;
};

// Room for three matrices and what the library wants beside them.
bool fits(const Device& device, std::int64_t size, Precision precision) {
  const std::size_t matrix = static_cast<std::size_t>(size * size) * size_of(image_type(precision));
  return 4 * matrix < device.available_memory();
}

std::vector<double> rates_of(Device& device, std::int64_t size, Precision precision, int repeats,
                             double repeat_seconds) {
  constexpr std::size_t kAlgorithms = 4;
  const Product product = product_of(size, precision);
  const Matrices matrices(device, product);
  std::unique_ptr<Trial> fastest;
  double best = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : matmul_candidates(product, kAlgorithms)) {
    auto executable = candidate.build();
    if (executable == nullptr) continue;
    auto trial = std::make_unique<Trial>(device, std::move(executable), matrices.operands());
    (void)trial->seconds(1);  // loads its code
    const double seconds = std::min(trial->seconds(2), trial->seconds(2)) / 2.0;
    if (seconds >= best) continue;
    best = seconds;
    fastest = std::move(trial);
  }
  std::vector<double> rates;
  if (fastest == nullptr) return rates;
  const auto edge = static_cast<double>(size);
  const std::int64_t runs =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(repeat_seconds / best)));
  for (int i = 0; i < repeats; ++i) {
    rates.push_back(2.0 * edge * edge * edge * static_cast<double>(runs) / fastest->seconds(runs));
  }
  return rates;
}

}  // namespace

std::vector<double> product_rates(Device& device, Precision precision, int repeats,
                                  double repeat_seconds) {
  if (!library_problem().empty()) return {};
  std::vector<double> best;
  const auto highest = [](const std::vector<double>& rates) {
    return rates.empty() ? 0.0 : *std::max_element(rates.begin(), rates.end());
  };
  for (const std::int64_t size : {8192, 4096}) {
    if (!fits(device, size, precision)) continue;
    std::vector<double> rates = rates_of(device, size, precision, repeats, repeat_seconds);
    if (highest(rates) > highest(best)) best = std::move(rates);
  }
  return best;
}

}  // namespace ridgeline::cudnn
