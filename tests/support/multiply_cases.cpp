// Cases of multiply: elements, squeeze-and-excitation, layer scale.

#include "support/op_cases.h"

namespace ridgeline::testing {

void add_multiply_cases(std::vector<OpCase>& cases) {
  struct MultiplyCase {
    std::string name;
    Shape a;
    Broadcast broadcast = Broadcast::none;
    bool big = false;
  };
  const std::vector<MultiplyCase> problems = {
      {"rows", {3, 11}},
      {"image", {2, 5, 3, 7}},
      {"one", {1, 1, 1, 1}},
      {"gate_7_channels", {2, 7, 5, 3}, Broadcast::image},
      {"gate_24_channels", {3, 24, 4, 4}, Broadcast::image},
      {"gate_one_sample", {1, 33, 7, 7}, Broadcast::image},
      {"gate_one_channel", {5, 1, 3, 3}, Broadcast::image},
      {"gate_one_row", {2, 16, 1, 5}, Broadcast::image},
      {"gate_efficientnet", {8, 96, 56, 56}, Broadcast::image, true},
      {"scale_rows", {5, 13}, Broadcast::channel},
      {"scale_image", {2, 7, 5, 3}, Broadcast::channel},
      {"scale_one_pixel", {3, 19, 1, 1}, Broadcast::channel},
      {"scale_one_channel", {3, 1, 2, 4}, Broadcast::channel},
      {"scale_convnext", {4, 96, 14, 14}, Broadcast::channel, true},
  };
  for (const MultiplyCase& p : problems) {
    CaseBuilder forward("multiply." + p.name);
    const ValueId a = forward.input(p.a);
    const ValueId b = p.broadcast == Broadcast::none    ? forward.input(p.a)
                      : p.broadcast == Broadcast::image ? forward.input({p.a[0], p.a[1], 1, 1})
                                                        : forward.parameter({p.a[1]});
    forward.node(OpKind::multiply, {a, b});
    cases.push_back(forward.done(p.big));
    if (p.broadcast == Broadcast::none) continue;
    CaseBuilder backward("multiply_backward." + p.name);
    const ValueId diff_dst = backward.input(p.a);
    backward.node(OpKind::multiply_backward, {diff_dst, backward.input(p.a)},
                  MultiplyAttributes{p.broadcast});
    cases.push_back(backward.done(p.big));
  }
  CaseBuilder squared("multiply.by_itself");
  const ValueId x = squared.input({2, 5, 3, 7});
  squared.node(OpKind::multiply, {x, x});
  cases.push_back(squared.done());
}

}  // namespace ridgeline::testing
