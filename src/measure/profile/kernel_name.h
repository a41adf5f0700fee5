#pragma once

// Names of kernels for people. The compiler writes types and template arguments into them.

#include <string>
#include <string_view>

namespace ridgeline {

// As it stands in the source, "void pool<float, 3>(float*, int)"; a name that the compiler did not
// make stays as it is.
[[nodiscard]] std::string demangled(const std::string& name);

// Without return type, arguments, namespaces and template arguments: "pool<…>". Of kernels that
// have their real name in a template argument, as CUTLASS's have, its first word stays:
// "Kernel2<cutlass_80_tensorop_s1688gemm_128x128…>".
[[nodiscard]] std::string short_kernel_name(std::string_view name);

// A call of the runtime without the version that tools put behind it: "cudaGraphLaunch".
[[nodiscard]] std::string plain_call_name(std::string_view name);

}  // namespace ridgeline
