// The test vectors of the ONNX project: models with inputs and expected outputs, computed by
// others. Every case that our ops can express must come out right on every backend; the others are
// listed with the reason.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "base/error.h"
#include "base/text.h"
#include "onnx/file.h"
#include "plan/session.h"
#include "support/onnx_translator.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

// How many of the 285 cases our ops express; a change here is a change of what is supported.
constexpr int kCases = 285;
constexpr int kExpressible = 187;

// The vectors' archive, unpacked into a folder that goes away at the end.
class Vectors {
 public:
  Vectors() {
    const char* data = std::getenv("RIDGELINE_TEST_DATA");
    const fs::path archive =
        fs::absolute(fs::path(data != nullptr ? data : "../shared/data") / "onnx-vectors.tar.xz");
    if (!fs::exists(archive)) {
      missing_ = archive.string();
      return;
    }
    std::string name = (fs::temp_directory_path() / "ridgeline-onnx-XXXXXX").string();
    ensure(mkdtemp(name.data()) != nullptr, "no temporary folder can be made");
    folder_ = name;
    const std::string command =
        fmt::format("tar -xJf '{}' -C '{}'", archive.string(), folder_.string());
    ensure(std::system(command.c_str()) == 0, "cannot be unpacked: {}", archive.string());
  }
  ~Vectors() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  Vectors(const Vectors&) = delete;
  Vectors& operator=(const Vectors&) = delete;

  [[nodiscard]] const std::string& missing() const { return missing_; }
  [[nodiscard]] std::vector<fs::path> cases() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.path().filename() == "model.onnx") found.push_back(entry.path().parent_path());
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  fs::path folder_;
  std::string missing_;
};

std::vector<onnx::Array> read_arrays(const fs::path& folder, const std::string& prefix) {
  std::vector<onnx::Array> arrays;
  for (int i = 0;; ++i) {
    const fs::path path = folder / fmt::format("{}_{}.pb", prefix, i);
    if (!fs::exists(path)) return arrays;
    arrays.push_back(onnx::read_array(path));
  }
}

// Single precision over sums of some hundred products; one case was written down with four digits.
double relative_tolerance(const std::string& name) {
  return name == "test_averagepool_2d_ceil_last_window_starts_on_pad" ? 1e-3 : 1e-5;
}

// Empty when the output is right, else what is wrong.
std::string difference(const std::vector<double>& got, const onnx::Dims& dims,
                       const onnx::Array& expected, double tolerance) {
  if (dims != expected.dims) return "other dimensions";
  const std::vector<double> numbers = expected.numbers();
  if (got.size() != numbers.size()) return "another number of elements";
  double largest = 0.0;
  for (const double number : numbers) largest = std::max(largest, std::abs(number));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double wanted = numbers[i];
    const double allowed = tolerance * (std::abs(wanted) + 0.2 * largest);
    if (!(std::abs(got[i] - wanted) <= allowed)) {
      return fmt::format("element {} is {}, expected {}", i, got[i], wanted);
    }
  }
  return {};
}

std::string run(const onnx::Translation& translation, const std::vector<onnx::Array>& expected,
                double tolerance, const Backend& backend) {
  const std::unique_ptr<Device> device = make_device(std::string(backend.device));
  Session session(*device);
  const Session::PlanId plan = session.add(
      make_plan(translation.graph,
                {.providers = providers_of(backend.name), .preferred = {}, .disabled_passes = {}}));
  session.prepare();
  for (const onnx::GraphInput& input : translation.inputs) session.write(input.name, input.bytes);
  session.step_state() = translation.state;
  session.write_step_state();
  session.run(plan);
  device->synchronize();
  const auto read = [&](ValueId value) { return session.read_value(plan, value); };
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const onnx::ModelOutput& output = translation.outputs[i];
    const std::string wrong = difference(output.read(read), output.dims, expected[i], tolerance);
    if (!wrong.empty()) return fmt::format("output '{}': {}", output.name, wrong);
  }
  return {};
}

class OnnxVectors : public ::testing::TestWithParam<const Backend*> {};

TEST_P(OnnxVectors, EveryCaseOfAnOpWeHavePasses) {
  const Backend& backend = *GetParam();
  const Vectors vectors;
  if (!vectors.missing().empty()) {
    GTEST_SKIP() << "no ONNX vectors at " << vectors.missing()
                 << "; set RIDGELINE_TEST_DATA to the folder that holds them";
  }
  int passed = 0, failed = 0, unsupported = 0;
  std::map<std::string, std::vector<std::string>> reasons;
  for (const fs::path& folder : vectors.cases()) {
    const std::string name = folder.filename().string();
    const fs::path data = folder / "test_data_set_0";
    try {
      const onnx::Translation translation =
          onnx::translate(onnx::read_model(folder / "model.onnx"), read_arrays(data, "input"));
      const std::vector<onnx::Array> expected = read_arrays(data, "output");
      ASSERT_EQ(expected.size(), translation.outputs.size()) << name;
      const std::string wrong = run(translation, expected, relative_tolerance(name), backend);
      EXPECT_EQ(wrong, "") << name << " on " << backend.name;
      wrong.empty() ? ++passed : ++failed;
    } catch (const onnx::Unsupported& because) {
      reasons[because.reason].push_back(name);
      ++unsupported;
    } catch (const std::exception& error) {
      ADD_FAILURE() << name << " on " << backend.name << ": " << error.what();
      ++failed;
    }
  }
  fmt::print("ONNX vectors on {}: {} passed, {} failed, {} unsupported\n", backend.name, passed,
             failed, unsupported);
  for (const auto& [reason, names] : reasons) {
    fmt::print("  unsupported, {}: {}\n", reason, joined(names, " "));
  }
  EXPECT_EQ(passed + failed + unsupported, kCases);
  EXPECT_EQ(passed, kExpressible);
}

INSTANTIATE_TEST_SUITE_P(Backends, OnnxVectors, ::testing::ValuesIn(usable_backends()),
                         [](const auto& backend) { return std::string(backend.param->name); });

}  // namespace
}  // namespace ridgeline
