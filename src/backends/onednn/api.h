#pragma once

// What differs between oneDNN 2.x and 3.x; the header that the build found decides. In 2.x an op
// descriptor stands between the arguments of a primitive and its descriptor, and an op whose dst
// has the form of its src names it once; 3.x does without the first and names both.

#include <dnnl.hpp>
#include <tuple>
#include <vector>

namespace ridgeline::onednn {

using dnnl::memory;
using Dims = memory::dims;
inline constexpr bool kOpDescriptors = DNNL_VERSION_MAJOR < 3;

[[nodiscard]] const dnnl::engine& cpu_engine();
[[nodiscard]] const dnnl::stream& cpu_stream();

// src and dst of one form, as arguments of a maker.
[[nodiscard]] inline auto src_and_dst(const memory::desc& data) {
  if constexpr (kOpDescriptors) {
    return std::tuple(data);
  } else {
    return std::tuple(data, data);
  }
}
// The size of windows without dilation, as arguments of a maker.
[[nodiscard]] inline auto windows(const Dims& kernel) {
  if constexpr (kOpDescriptors) {
    return std::tuple(kernel);
  } else {
    return std::tuple(kernel, Dims(kernel.size()));
  }
}

template <typename T>
auto as_tuple(const T& argument) {
  return std::tuple<T>(argument);
}
template <typename... T>
auto as_tuple(const std::tuple<T...>& arguments) {
  return arguments;
}

// A function that makes a primitive's descriptor at the library's first choice; an empty one where
// the library has no implementation. What it refers to lives as long as the function: walking on to
// other implementations reads it again.
template <typename Primitive, typename... Args>
[[nodiscard]] auto forward_maker(const dnnl::primitive_attr& attr, const Args&... args) {
  return std::apply(
      [&](const auto&... all) {
#if DNNL_VERSION_MAJOR >= 3
        return [=] { return typename Primitive::primitive_desc(cpu_engine(), all..., attr, true); };
#else
        return [op = typename Primitive::desc(all...), attr] {
          return typename Primitive::primitive_desc(op, attr, cpu_engine(), true);
        };
#endif
      },
      std::tuple_cat(as_tuple(args)...));
}

// `hint`: the descriptor of the forward pass.
template <typename Primitive, typename Hint, typename... Args>
[[nodiscard]] auto backward_maker(const dnnl::primitive_attr& attr, const Hint& hint,
                                  const Args&... args) {
  return std::apply(
      [&](const auto&... all) {
#if DNNL_VERSION_MAJOR >= 3
        return [=] {
          return typename Primitive::primitive_desc(cpu_engine(), all..., hint, attr, true);
        };
#else
        return [op = typename Primitive::desc(all...), attr, hint] {
          return typename Primitive::primitive_desc(op, attr, cpu_engine(), hint, true);
        };
#endif
      },
      std::tuple_cat(as_tuple(args)...));
}

// How the axes of a descriptor lie in memory.
struct Blocking {
  bool known = false;  // else the library keeps it to itself
  Dims strides, blocks, block_axes;
};

#if DNNL_VERSION_MAJOR >= 3

[[nodiscard]] inline dnnl::concat::primitive_desc describe_concat(
    const memory::desc& dst, int axis, const std::vector<memory::desc>& srcs,
    const dnnl::primitive_attr& attr) {
  return {cpu_engine(), dst, axis, srcs, attr};
}
inline void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm what, float alpha, float beta) {
  ops.append_eltwise(what, alpha, beta);
}
[[nodiscard]] inline Dims dims_of(const memory::desc& desc) { return desc.get_dims(); }
[[nodiscard]] inline memory::data_type type_of(const memory::desc& desc) {
  return desc.get_data_type();
}
[[nodiscard]] inline Blocking blocking_of(const memory::desc& desc) {
  if (desc.get_format_kind() != memory::format_kind::blocked) return {};
  return {true, desc.get_strides(), desc.get_inner_blks(), desc.get_inner_idxs()};
}
[[nodiscard]] inline dnnl_status_t set_data(const memory& object, void* data) {
  return dnnl_memory_set_data_handle(object.get(), data);
}

#else

[[nodiscard]] inline dnnl::concat::primitive_desc describe_concat(
    const memory::desc& dst, int axis, const std::vector<memory::desc>& srcs,
    const dnnl::primitive_attr& attr) {
  return {dst, axis, srcs, cpu_engine(), attr};
}
inline void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm what, float alpha, float beta) {
  ops.append_eltwise(1.0F, what, alpha, beta);
}
[[nodiscard]] inline Dims dims_of(const memory::desc& desc) { return desc.dims(); }
[[nodiscard]] inline memory::data_type type_of(const memory::desc& desc) {
  return desc.data_type();
}
[[nodiscard]] inline Blocking blocking_of(const memory::desc& desc) {
  if (desc.data.format_kind != dnnl_blocked) return {};
  const dnnl_blocking_desc_t& from = desc.data.format_desc.blocking;
  return {true,
          {from.strides, from.strides + desc.data.ndims},
          {from.inner_blks, from.inner_blks + from.inner_nblks},
          {from.inner_idxs, from.inner_idxs + from.inner_nblks}};
}
[[nodiscard]] inline dnnl_status_t set_data(const memory& object, void* data) {
  return dnnl_memory_set_data_handle_v2(object.get(), data, cpu_stream().get());
}

#endif

}  // namespace ridgeline::onednn
