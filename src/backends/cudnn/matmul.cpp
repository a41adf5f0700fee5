// Matrix products through cuBLASLt, which stores matrices by columns: an image of p pixels with c
// channels is a matrix of c rows and p columns, gaps between pixels and all. So
//   dst = weightsᵀ · src,   diff_src = weights · diff_dst,   diff_weights = src · diff_dstᵀ.

#include <algorithm>

#include "backends/cudnn/executable.h"
#include "backends/cudnn/graph.h"
#include "base/error.h"

namespace ridgeline::cudnn {
namespace {

constexpr std::uint64_t kMostWorkspace = std::uint64_t{32} << 20;

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      fail("cuBLASLt: no product of {}", name_of(dtype));
  }
}

class MatrixLayout {
 public:
  MatrixLayout(const Image& image, DType dtype) {
    check(lt().create_layout(&raw_, data_type(dtype), static_cast<std::uint64_t>(image.c),
                             static_cast<std::uint64_t>(image.pixels()), image.stride),
          "describing a matrix");
  }
  ~MatrixLayout() { (void)lt().destroy_layout(raw_); }
  MatrixLayout(const MatrixLayout&) = delete;
  MatrixLayout& operator=(const MatrixLayout&) = delete;
  [[nodiscard]] cublasLtMatrixLayout_t raw() const { return raw_; }

 private:
  cublasLtMatrixLayout_t raw_ = nullptr;
};

class Preference {
 public:
  Preference() { check(lt().create_preference(&raw_), "making a preference"); }
  ~Preference() { (void)lt().destroy_preference(raw_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  template <typename T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    check(lt().set_preference(raw_, attribute, &value, sizeof(value)), "setting a preference");
  }
  [[nodiscard]] cublasLtMatmulPreference_t raw() const { return raw_; }

 private:
  cublasLtMatmulPreference_t raw_ = nullptr;
};

std::uint32_t epilogue_of(const Product& product) {
  if (product.biased) {
    return product.activation ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
  }
  return product.activation ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
}

std::int32_t transposed(bool is) { return is ? CUBLAS_OP_T : CUBLAS_OP_N; }

// The product as the library describes it, whatever algorithm then computes it.
class Matmul {
 public:
  explicit Matmul(const Product& product)
      : left_operand_(product.direction == Direction::backward_weights ? kFirst : kSecond),
        right_operand_(product.direction == Direction::backward_weights ? kSecond : kFirst),
        biased_(product.biased),
        left_(image_of(product, left_operand_), product.dtype),
        right_(image_of(product, right_operand_), product.dtype),
        result_(image_of(product, kResult), product.dtype) {
    const auto compute = product.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    check(lt().create_matmul(&raw_, compute, CUDA_R_32F), "describing a product");
    const bool forward = product.direction == Direction::forward;
    const bool weights = product.direction == Direction::backward_weights;
    set(CUBLASLT_MATMUL_DESC_TRANSA, transposed(forward));
    set(CUBLASLT_MATMUL_DESC_TRANSB, transposed(weights));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(product));
    // The heuristics look at the alignment of this address; it is set again before each run.
    if (biased_) set_bias(reinterpret_cast<const void*>(kAlignment));
  }
  ~Matmul() { (void)lt().destroy_matmul(raw_); }
  Matmul(const Matmul&) = delete;
  Matmul& operator=(const Matmul&) = delete;

  [[nodiscard]] std::vector<cublasLtMatmulHeuristicResult_t> algorithms(std::size_t most,
                                                                        DType dtype) const {
    Preference preference;
    preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
    // Sums of parts keep all digits until the end, which the other schemes do for f32 alone.
    const std::uint32_t schemes = dtype == DType::f32 ? CUBLASLT_REDUCTION_SCHEME_MASK
                                                      : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, schemes);
    for (const auto which :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      preference.set(which, static_cast<std::uint32_t>(kAlignment));
    }
    std::vector<cublasLtMatmulHeuristicResult_t> found(most);
    int count = 0;
    const cublasStatus_t status = lt().get_heuristic(lt_handle(), raw_, left_.raw(), right_.raw(),
                                                     result_.raw(), result_.raw(), preference.raw(),
                                                     static_cast<int>(most), found.data(), &count);
    found.resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<std::size_t>(count) : 0);
    std::erase_if(found, [](const auto& result) { return result.state != CUBLAS_STATUS_SUCCESS; });
    return found;
  }

  void run(const cublasLtMatmulAlgo_t& algorithm, const Operands& operands, std::byte* workspace,
           std::size_t workspace_bytes, Stream stream) const {
    const float one = 1.0F, zero = 0.0F;
    if (biased_) set_bias(operands[kBias]);
    check(lt().matmul(lt_handle(), raw_, &one, operands[left_operand_], left_.raw(),
                      operands[right_operand_], right_.raw(), &zero, operands[kResult],
                      result_.raw(), operands[kResult], result_.raw(), &algorithm, workspace,
                      workspace_bytes, stream),
          "running a product");
  }

 private:
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) const {
    check(lt().set_matmul(raw_, attribute, &value, sizeof(value)), "setting a product's attribute");
  }
  void set_bias(const void* bias) const { set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); }

  Operand left_operand_, right_operand_;
  bool biased_;
  MatrixLayout left_, right_, result_;
  cublasLtMatmulDesc_t raw_ = nullptr;
};

class MatmulExecutable final : public Executable {
 public:
  MatmulExecutable(std::shared_ptr<const Matmul> matmul,
                   const cublasLtMatmulHeuristicResult_t& found, std::string algorithm)
      : matmul_(std::move(matmul)), algorithm_(found.algo) {
    name = std::move(algorithm);
    workspace_bytes = found.workspaceSize;
  }

  void execute(const Operands& operands, std::byte* workspace, Stream stream) const override {
    matmul_->run(algorithm_, operands, workspace, workspace_bytes, stream);
  }

 private:
  std::shared_ptr<const Matmul> matmul_;
  cublasLtMatmulAlgo_t algorithm_;
};

template <typename T>
T setting(const cublasLtMatmulAlgo_t& algorithm, cublasLtMatmulAlgoConfigAttributes_t which) {
  T value{};
  std::size_t written = 0;
  // A setting that this version of the library does not know stays 0.
  (void)lt().get_algorithm(&algorithm, which, &value, sizeof(value), &written);
  return value;
}

// "lt66{20,1,36,0,0,0,2}": the algorithm's number, then its tile, splits, stages and so on.
std::string name_of(const cublasLtMatmulAlgo_t& algorithm) {
  return fmt::format("lt{}{{{},{},{},{},{},{},{}}}",
                     setting<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_ID),
                     setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
                     setting<std::int32_t>(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                     setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
                     setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
                     setting<std::uint32_t>(algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
                     setting<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID),
                     setting<std::uint16_t>(algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID));
}

bool has_epilogue(const Product& product) {
  if (product.activation && product.activation->kind != ActivationKind::relu) return false;
  // The library adds a bias of the result's type, and ours are f32.
  return !product.biased || product.dtype == DType::f32;
}

}  // namespace

std::vector<Candidate> matmul_candidates(const Product& product, std::size_t most) {
  if (!product.pointwise() || !has_epilogue(product)) return {};
  const auto matmul = std::make_shared<const Matmul>(product);
  std::vector<Candidate> candidates;
  for (const auto& found : matmul->algorithms(most, product.dtype)) {
    const std::string name = name_of(found.algo);
    candidates.push_back({name, [matmul, found, name] {
                            return std::make_shared<const MatmulExecutable>(matmul, found, name);
                          }});
  }
  return candidates;
}

}  // namespace ridgeline::cudnn
