// Cases of layer norm and group norm.

#include "support/op_cases.h"

namespace ridgeline::testing {
namespace {

struct NormCase {
  std::string name;
  Shape src;
  LayerNormAttributes attributes;
  Data data = Data::normal;
  bool big = false;
};

Shape statistics_of(const NormCase& p) {
  if (p.attributes.groups > 0) return {p.src[0], p.attributes.groups};
  if (p.src.rank() == 2) return {p.src[0], 1};
  return {p.src[0], 1, p.src[2], p.src[3]};
}

void add_case(std::vector<OpCase>& cases, const NormCase& p) {
  const Shape channels = {p.src[1]};
  CaseBuilder forward("layer_norm." + p.name);
  const ValueId src = forward.input(p.src, p.data);
  const ValueId scale = forward.parameter(channels);
  forward.node(OpKind::layer_norm, {src, scale, forward.parameter(channels)}, p.attributes);
  cases.push_back(forward.done(p.big));

  CaseBuilder backward("layer_norm_backward." + p.name);
  const ValueId diff_dst = backward.input(p.src);
  const ValueId kept = backward.input(p.src, p.data);
  const ValueId mean = backward.state(statistics_of(p), Role::statistics, p.data);
  const ValueId inverse = backward.state(statistics_of(p), Role::statistics, Data::positive);
  backward.node(OpKind::layer_norm_backward,
                {diff_dst, kept, mean, inverse, backward.parameter(channels)}, p.attributes);
  cases.push_back(backward.done(p.big));
}

}  // namespace

void add_layer_norm_cases(std::vector<OpCase>& cases) {
  for (const NormCase& p : std::vector<NormCase>{
           {"rows", {5, 13}, {}},
           {"one_row_of_96", {1, 96}, {.epsilon = 1e-6}},
           {"image", {2, 7, 3, 5}, {}},
           {"image_of_48", {2, 48, 5, 3}, {.epsilon = 1e-6}},
           {"one_pixel", {3, 17, 1, 1}, {}},
           {"shifted", {2, 24, 5, 3}, {}, Data::shifted},
           {"convnext", {2, 96, 14, 14}, {.epsilon = 1e-6}, Data::normal, true},
           {"convnext_192_shifted", {3, 192, 7, 5}, {.epsilon = 1e-6}, Data::shifted, true},
           {"convnext_768", {1, 768, 3, 3}, {.epsilon = 1e-6}, Data::normal, true},
           {"more_than_registers_hold", {2, 8448, 1, 3}, {}, Data::normal, true},
           {"group_one", {2, 6, 3, 5}, {.groups = 1}},
           {"group_3_of_4", {3, 12, 3, 2}, {.groups = 3}},
           {"group_each_channel", {2, 5, 4, 3}, {.groups = 5}},
           {"group_rows", {3, 12}, {.groups = 2}},
           {"group_shifted", {2, 32, 5, 7}, {.groups = 4}, Data::shifted},
           {"group_32_of_2", {1, 64, 7, 7}, {.groups = 32}},
       }) {
    add_case(cases, p);
  }
}

}  // namespace ridgeline::testing
