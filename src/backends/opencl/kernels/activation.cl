// Activations by the numbers of ActivationKind (ops/activation.h); -1 is none.

#define RELU 0
#define RELU6 1
#define LEAKY_RELU 2
#define SIGMOID 3
#define TANH 4
#define SILU 5
#define HARD_SIGMOID 6
#define HARD_SWISH 7
#define GELU 8
#define GELU_TANH 9

float sigmoid_of(float x) { return 1.0f / (1.0f + exp(-x)); }

float hard_sigmoid_of(float x) {
  return x <= -3.0f ? 0.0f : x >= 3.0f ? 1.0f : (x + 3.0f) / 6.0f;
}

// The share of the normal distribution below x; erfc keeps the small ones exact.
float normal_below(float x) { return 0.5f * erfc(-0.70710678118654752f * x); }
// Twice the polynomial under the tanh of GELU's approximation.
float twice_u(float x) { return 1.5957691216057308f * x * (1.0f + 0.044715f * x * x); }

// Comparisons are written so that NaN passes.
float activated(int kind, float slope, float x) {
  if (kind < 0) return x;
  if (kind == RELU) return x < 0.0f ? 0.0f : x;
  if (kind == RELU6) return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x;
  if (kind == LEAKY_RELU) return x < 0.0f ? x * slope : x;
  if (kind == SIGMOID) return sigmoid_of(x);
  if (kind == TANH) return tanh(x);
  if (kind == SILU) return x * sigmoid_of(x);
  if (kind == HARD_SIGMOID) return hard_sigmoid_of(x);
  if (kind == HARD_SWISH) return x * hard_sigmoid_of(x);
  if (kind == GELU) return x * normal_below(x);
  return x * sigmoid_of(twice_u(x));
}

// The gradient at the point whose dst is `kept`; its src for SiLU, hard-swish and GELU.
float differentiated(int kind, float slope, float diff, float kept) {
  if (kind < 0) return diff;
  if (kind == RELU) return kept <= 0.0f ? 0.0f : diff;
  if (kind == RELU6) return kept <= 0.0f || kept >= 6.0f ? 0.0f : diff;
  if (kind == LEAKY_RELU) return kept > 0.0f ? diff : slope * diff;
  if (kind == SIGMOID) return diff * kept * (1.0f - kept);
  if (kind == TANH) return diff * (1.0f - kept * kept);
  if (kind == HARD_SIGMOID) return kept <= 0.0f || kept >= 1.0f ? 0.0f : diff / 6.0f;
  if (kind == HARD_SWISH) {
    return kept < -3.0f ? 0.0f : kept > 3.0f ? diff : diff * (kept / 3.0f + 0.5f);
  }
  if (kind == SILU) {
    const float s = sigmoid_of(kept);
    return diff * s * (1.0f + kept * (1.0f - s));
  }
  if (kind == GELU) {
    const float density = 0.39894228040143268f * exp(-0.5f * kept * kept);
    return diff * (normal_below(kept) + kept * density);
  }
  const float s = sigmoid_of(twice_u(kept));
  const float rise = 1.5957691216057308f * (1.0f + 3.0f * 0.044715f * kept * kept);
  return diff * s * (1.0f + kept * (1.0f - s) * rise);
}
