// Activations and their derivatives on vectors. NaN passes through all of them, as in PyTorch.
// Included once for each instruction set.

#if defined(RIDGELINE_NATIVE_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RIDGELINE_NATIVE_ACTIVATION_INL_H_
#undef RIDGELINE_NATIVE_ACTIVATION_INL_H_
#else
#define RIDGELINE_NATIVE_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include "ops/activation.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// exp(x) for x <= 0, to about 1 ulp; 1.2e-38 where exp(x) is less.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of_negative(D d, V x) {
  // x = n ln 2 + r; ln 2 in two parts keeps r exact.
  x = hn::IfThenElse(hn::Lt(x, hn::Set(d, -87.3F)), hn::Set(d, -87.3F), x);
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504F)));
  V r = hn::MulAdd(n, hn::Set(d, -0.693359375F), x);
  r = hn::MulAdd(n, hn::Set(d, 2.12194440e-4F), r);
  V p = hn::Set(d, 0.00138144696F);
  p = hn::MulAdd(p, r, hn::Set(d, 0.00836878084F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.0416683927F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.166665196F));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994F));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0F));
  const hn::RebindToSigned<D> di;
  const auto exponent = hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(exponent)));
}

// Through exp(-|x|), which cannot overflow.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V e = exp_of_negative(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

// An odd polynomial near zero, where 1 - exp(-2|x|) would lose its digits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V hyperbolic_tangent(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V magnitude = hn::Abs(x);
  const V e = exp_of_negative(d, hn::Mul(magnitude, hn::Set(d, -2.0F)));
  const V far = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  const V square = hn::Mul(x, x);
  V p = hn::Set(d, -0.00571704702F);
  p = hn::MulAdd(p, square, hn::Set(d, 0.0206505898F));
  p = hn::MulAdd(p, square, hn::Set(d, -0.0537435003F));
  p = hn::MulAdd(p, square, hn::Set(d, 0.133314908F));
  p = hn::MulAdd(p, square, hn::Set(d, -0.333332837F));
  const V near = hn::MulAdd(hn::Mul(p, square), x, x);
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.625F)), near, far);
}

// relu6(x + 3) / 6.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V hard_sigmoid(D d, V x) {
  const V six = hn::Set(d, 6.0F), shifted = hn::Add(x, hn::Set(d, 3.0F));
  const V not_below = hn::IfThenZeroElse(hn::Lt(shifted, hn::Zero(d)), shifted);
  const V bounded = hn::IfThenElse(hn::Gt(shifted, six), six, not_below);
  return hn::Mul(bounded, hn::Set(d, 1.0F / 6.0F));
}

// The normal distribution, and exp(-x²/2), of which it is made.
template <class V>
struct Normal {
  V below, power;
};

// Below -|x| lies exp(-x²/2) times a function that is smooth in t = 1 / (1 + 0.212 |x|): a
// polynomial of degree 9 gives it to 3e-8 of itself, so that the far tail keeps its digits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE Normal<V> normal_of(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V t = hn::Div(one, hn::MulAdd(hn::Abs(x), hn::Set(d, 0.212132037F), one));
  V p = hn::Set(d, -0.0653854385F);
  p = hn::MulAdd(p, t, hn::Set(d, 0.245967135F));
  p = hn::MulAdd(p, t, hn::Set(d, -0.263075829F));
  p = hn::MulAdd(p, t, hn::Set(d, 0.28225711F));
  p = hn::MulAdd(p, t, hn::Set(d, -0.0534916818F));
  p = hn::MulAdd(p, t, hn::Set(d, 0.110269584F));
  p = hn::MulAdd(p, t, hn::Set(d, 0.0733980089F));
  p = hn::MulAdd(p, t, hn::Set(d, 0.0854745582F));
  p = hn::MulAdd(p, t, hn::Set(d, 0.0845865309F));
  const V power = exp_of_negative(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5F)));
  const V tail = hn::Mul(hn::Mul(p, t), power);
  return {hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)), power};
}

// 2 √(2/π) (x + 0.044715 x³), whose sigmoid is gelu_tanh's factor, and its slope.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_exponent(D d, V x) {
  const V cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.0713548163F), hn::Set(d, 1.59576912F));
  return hn::Mul(x, cubic);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_exponent_slope(D d, V x) {
  return hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.214064449F), hn::Set(d, 1.59576912F));
}

// Each kind has forward(d, src) -> dst and backward(d, diff_dst, kept) -> diff_src, where `kept` is
// dst, or src where backward_uses_src.
struct NoActivation {
  static constexpr bool kActive = false;
  template <class D, class V>
  HWY_INLINE V forward(D, V x) const {
    return x;
  }
  template <class D, class V>
  HWY_INLINE V backward(D, V diff, V) const {
    return diff;
  }
};

struct Relu {
  static constexpr bool kActive = true;
  template <class D, class V>
  HWY_INLINE V forward(D d, V x) const {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V diff, V kept) const {
    return hn::IfThenZeroElse(hn::Le(kept, hn::Zero(d)), diff);
  }
};

struct Relu6 {
  static constexpr bool kActive = true;
  template <class D, class V>
  HWY_INLINE V forward(D d, V x) const {
    const V six = hn::Set(d, 6.0F);
    return hn::IfThenElse(hn::Gt(x, six), six, Relu().forward(d, x));
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V diff, V kept) const {
    return hn::IfThenZeroElse(hn::Ge(kept, hn::Set(d, 6.0F)), Relu().backward(d, diff, kept));
  }
};

struct LeakyRelu {
  static constexpr bool kActive = true;
  float slope;
  template <class D, class V>
  HWY_INLINE V forward(D d, V x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, slope)), x);
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V diff, V kept) const {
    return hn::IfThenElse(hn::Gt(kept, hn::Zero(d)), diff, hn::Mul(diff, hn::Set(d, slope)));
  }
};

struct Sigmoid {
  static constexpr bool kActive = true;
  template <class D, class V>
  HWY_INLINE V forward(D d, V x) const {
    return sigmoid(d, x);
  }
  template <class D, class V>
  HWY_INLINE V backward(D, V diff, V kept) const {
    return hn::Mul(diff, hn::NegMulAdd(kept, kept, kept));
  }
};

struct Tanh {
  static constexpr bool kActive = true;
  template <class D, class V>
  HWY_INLINE V forward(D d, V x) const {
    return hyperbolic_tangent(d, x);
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V diff, V kept) const {
    return hn::Mul(diff, hn::NegMulAdd(kept, kept, hn::Set(d, 1.0F)));
  }
};

struct Silu {
  static constexpr bool kActive = true;
  template <class D, class V>
  HWY_INLINE V forward(D d, V x) const {
    return hn::Mul(x, sigmoid(d, x));
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V diff, V kept) const {
    const V s = sigmoid(d, kept);
    const V slope = hn::MulAdd(hn::Mul(s, kept), hn::Sub(hn::Set(d, 1.0F), s), s);
    return hn::Mul(diff, slope);
  }
};

struct HardSigmoid {
  static constexpr bool kActive = true;
  template <class D, class V>
  HWY_INLINE V forward(D d, V x) const {
    return hard_sigmoid(d, x);
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V diff, V kept) const {
    const V slope = hn::Mul(diff, hn::Set(d, 1.0F / 6.0F));
    const auto flat = hn::Or(hn::Le(kept, hn::Zero(d)), hn::Ge(kept, hn::Set(d, 1.0F)));
    return hn::IfThenZeroElse(flat, slope);
  }
};

struct HardSwish {
  static constexpr bool kActive = true;
  template <class D, class V>
  HWY_INLINE V forward(D d, V x) const {
    return hn::Mul(x, hard_sigmoid(d, x));
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V diff, V kept) const {
    const V slope = hn::MulAdd(kept, hn::Set(d, 1.0F / 3.0F), hn::Set(d, 0.5F));
    const V inner = hn::IfThenElse(hn::Gt(kept, hn::Set(d, 3.0F)), diff, hn::Mul(diff, slope));
    return hn::IfThenZeroElse(hn::Lt(kept, hn::Set(d, -3.0F)), inner);
  }
};

struct Gelu {
  static constexpr bool kActive = true;
  template <class D, class V>
  HWY_INLINE V forward(D d, V x) const {
    return hn::Mul(x, normal_of(d, x).below);
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V diff, V kept) const {
    const auto normal = normal_of(d, kept);
    const V density = hn::Mul(normal.power, hn::Set(d, 0.398942280F));
    return hn::Mul(diff, hn::MulAdd(kept, density, normal.below));
  }
};

struct GeluTanh {
  static constexpr bool kActive = true;
  template <class D, class V>
  HWY_INLINE V forward(D d, V x) const {
    return hn::Mul(x, sigmoid(d, gelu_exponent(d, x)));
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V diff, V kept) const {
    const V s = sigmoid(d, gelu_exponent(d, kept));
    const V bend = hn::Mul(hn::Mul(s, kept), gelu_exponent_slope(d, kept));
    return hn::Mul(diff, hn::MulAdd(bend, hn::Sub(hn::Set(d, 1.0F), s), s));
  }
};

// Calls body with the struct of a kind.
template <typename Body>
HWY_INLINE void with_activation(ActivationKind kind, float slope, const Body& body) {
  switch (kind) {
    case ActivationKind::relu:
      return body(Relu());
    case ActivationKind::relu6:
      return body(Relu6());
    case ActivationKind::leaky_relu:
      return body(LeakyRelu{slope});
    case ActivationKind::sigmoid:
      return body(Sigmoid());
    case ActivationKind::tanh:
      return body(Tanh());
    case ActivationKind::silu:
      return body(Silu());
    case ActivationKind::hard_sigmoid:
      return body(HardSigmoid());
    case ActivationKind::hard_swish:
      return body(HardSwish());
    case ActivationKind::gelu:
      return body(Gelu());
    case ActivationKind::gelu_tanh:
      return body(GeluTanh());
  }
}

// Not inlined: for kernels of which a copy for each kind would be too many.
template <class D, class V = hn::Vec<D>>
HWY_NOINLINE V any_forward(D d, ActivationKind kind, float slope, V x) {
  V dst = x;
  with_activation(kind, slope, [&](auto activation) HWY_ATTR { dst = activation.forward(d, x); });
  return dst;
}

template <class D, class V = hn::Vec<D>>
HWY_NOINLINE V any_backward(D d, ActivationKind kind, float slope, V diff, V kept) {
  V diff_src = diff;
  with_activation(kind, slope,
                  [&](auto activation) HWY_ATTR { diff_src = activation.backward(d, diff, kept); });
  return diff_src;
}

// Decides vector by vector.
struct AnyActivation {
  static constexpr bool kActive = true;
  ActivationKind kind;
  float slope;
  template <class D, class V>
  HWY_INLINE V forward(D d, V x) const {
    return any_forward(d, kind, slope, x);
  }
  template <class D, class V>
  HWY_INLINE V backward(D d, V diff, V kept) const {
    return any_backward(d, kind, slope, diff, kept);
  }
};

// Calls body with NoActivation, Relu or AnyActivation.
template <typename Body>
HWY_INLINE void with_common_activation(const ActivationAttributes* activation, const Body& body) {
  if (activation == nullptr) return body(NoActivation());
  if (activation->kind == ActivationKind::relu) return body(Relu());
  body(AnyActivation{activation->kind, static_cast<float>(activation->slope)});
}

// The same with copies for all that stand behind batch norms.
template <typename Body>
HWY_INLINE void with_norm_activation(const ActivationAttributes* activation, const Body& body) {
  const ActivationKind kind = activation == nullptr ? ActivationKind::relu : activation->kind;
  if (activation != nullptr && kind == ActivationKind::relu6) return body(Relu6());
  if (activation != nullptr && kind == ActivationKind::silu) return body(Silu());
  if (activation != nullptr && kind == ActivationKind::hard_swish) return body(HardSwish());
  with_common_activation(activation, body);
}

}  // namespace ridgeline::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
