// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scaled dot product attention and its gradient. Heads that share keys and values (grouped queries) are rows of one
// matrix.

#include <cmath>
#include <limits>

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "passes/Import/NodeImporter.h"
#include "passes/Import/Registry.h"

using namespace mlir;
using namespace mlir::neuron;

namespace {

struct Attention {
  Value query, key, value; // [batch, heads or groups, rows, depth]
  Value bias;              // f32 or i1 (false: -infinity), repeats to [batch, heads, queries, keys]; or null
  double scale = 1;
  bool causal = false;
  bool unbatched = false; // the operands had no batch dimension
  AttentionDropout dropout;

  int64_t batch() const { return shape(query)[0]; }
  int64_t heads() const { return shape(query)[1]; }
  int64_t groups() const { return shape(key)[1]; }
  int64_t queries() const { return shape(query)[2]; }
  int64_t keys() const { return shape(key)[2]; }
  int64_t depth() const { return shape(query)[3]; }
  int64_t valueDepth() const { return shape(value)[3]; }

  static ArrayRef<int64_t> shape(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }
};

Value withBatch(NodeImporter &b, Value value) { return b.rank(value) == 3 ? b.unsqueeze(value, 0) : value; }

/// The operands at `first` (query, key, value, bias); nullopt after an error.
std::optional<Attention> read(NodeImporter &b, unsigned first, unsigned causalAt, unsigned scaleAt) {
  Attention a;
  Value query = b.tensor(first);
  a.unbatched = b.rank(query) == 3;
  a.query = withBatch(b, query);
  a.key = withBatch(b, b.tensor(first + 1));
  a.value = withBatch(b, b.tensor(first + 2));
  a.causal = b.boolean(causalAt);
  bool fits = b.rank(a.query) == 4 && b.rank(a.key) == 4 && b.rank(a.value) == 4;
  if (fits) {
    ArrayRef<int64_t> q = b.shape(a.query), k = b.shape(a.key), v = b.shape(a.value);
    fits =
        q[0] == k[0] && k[0] == v[0] && k[1] == v[1] && k[2] == v[2] && q[3] == k[3] && k[1] != 0 && q[1] % k[1] == 0;
  }
  if (!fits || !b.isFloat(b.element(a.query)) || b.element(a.query) != b.element(a.key) ||
      b.element(a.query) != b.element(a.value)) {
    b.error(
        "expected query, key and value [batch, heads, rows, depth] of one float dtype, with one batch size, depth and "
        "number of keys");
    return std::nullopt;
  }
  a.scale = b.isNone(scaleAt) ? 1 / std::sqrt(double(a.depth())) : b.floating(scaleAt);
  if (std::optional<Value> bias = b.optionalTensor(first + 3)) {
    Value value = *bias;
    if (!b.isBool(b.element(value)))
      value = b.castTo(value, b.f32());
    while (b.rank(value) < 4)
      value = b.unsqueeze(value, 0);
    // The dimension of the keys is written out.
    if (b.shape(value)[3] != a.keys())
      value = b.broadcastTo(value, {b.shape(value)[0], b.shape(value)[1], b.shape(value)[2], a.keys()});
    a.bias = value;
  }
  return a;
}

/// [batch * groups, heads of a group * rows, depth]
Value byGroup(NodeImporter &b, const Attention &a, Value value) {
  ArrayRef<int64_t> shape = b.shape(value);
  return b.reshape(value, {a.batch() * a.groups(), shape[1] / a.groups() * shape[2], shape[3]});
}

Value turned(NodeImporter &b, Value value) { return b.transpose(value, {0, 2, 1}); }

/// [batch, heads, queries, keys] in f32.
Value scores(NodeImporter &b, const Attention &a) {
  Value product = b.contract(byGroup(b, a, a.query), turned(b, byGroup(b, a, a.key)), b.f32());
  Value all = b.mul(b.reshape(product, {a.batch(), a.heads(), a.queries(), a.keys()}), a.scale);
  if (a.bias)
    all = b.isBool(b.element(a.bias)) ? b.select(a.bias, all, -std::numeric_limits<double>::infinity())
                                      : b.add(all, a.bias);
  if (a.causal) {
    Value seen = b.compare(ComparePredicate::Le, b.coordinate(4, 3, a.keys()), b.coordinate(4, 2, a.queries()));
    all = b.select(seen, all, -std::numeric_limits<double>::infinity());
  }
  return all;
}

bool isStreamable(const Attention &a) { return isStreamableAttention(a.depth(), a.valueDepth(), a.scale); }

/// The same for neuron.attention_backward, which cuts deep values as well.
bool isBackwardStreamable(const Attention &a) {
  return isStreamable(a) && a.keys() > 0 && a.queries() > 0 && a.valueDepth() % ((a.valueDepth() + 127) / 128) == 0;
}

/// Where the random numbers of the weights come from. `state`: (seed, offset).
bool setDropout(NodeImporter &b, Attention &a, double probability, llvm::function_ref<Value()> state) {
  if (!(probability >= 0 && probability < 1)) {
    b.error("expected dropout_p of at least 0 and less than 1 but got " + Twine(std::to_string(probability)));
    return false;
  }
  if (probability == 0)
    return true;
  const int64_t ofHead = a.queries() * a.keys();
  a.dropout = {probability, state(),
               b.iota(b.i64(), {a.batch(), a.heads(), a.queries()}, 0, {a.heads() * ofHead, ofHead, a.keys()})};
  return true;
}

/// `weights` as dropout leaves them, in f32.
Value dropped(NodeImporter &b, const Attention &a, Value weights) {
  if (!a.dropout.state)
    return weights;
  const double kept = 1 - a.dropout.probability;
  Value keep = b.compare(ComparePredicate::Lt, b.uniformOf(a.dropout.state, b.shape(weights)), kept);
  return b.mul(b.mul(weights, b.castTo(keep, b.f32())), 1 / kept);
}

void forward(NodeImporter &b) {
  std::optional<Attention> a = read(b, 0, 5, 7);
  if (!a || !setDropout(b, *a, b.floating(4), [&] { return b.randomState(); }))
    return;
  Value result, sums;
  Type element = b.element(a->query);
  if (a->keys() == 0) {
    result = b.constant(element, 0, {a->batch(), a->heads(), a->queries(), a->valueDepth()});
    sums = b.constant(b.f32(), -std::numeric_limits<double>::infinity(), {a->batch(), a->heads(), a->queries()});
  } else if (isStreamable(*a)) {
    std::tie(result, sums) = b.attention(a->query, a->key, a->value, a->bias, a->scale, a->causal, a->dropout);
  } else {
    Value all = scores(b, *a);
    Value largest = b.binary(BinaryFunction::Max, b.reduce(ReduceKind::Max, all, {3}),
                             double(std::numeric_limits<float>::lowest()));
    Value weights = b.unary(UnaryFunction::Exp, b.sub(all, largest));
    Value total = b.sum(weights, {3});
    weights = b.div(weights, b.binary(BinaryFunction::Max, total, double(std::numeric_limits<float>::min())));
    Value product =
        b.contract(byGroup(b, *a, b.castTo(dropped(b, *a, weights), element)), byGroup(b, *a, a->value), b.f32());
    result = b.reshape(product, {a->batch(), a->heads(), a->queries(), a->valueDepth()});
    sums = b.dropDimensions(b.add(largest, b.unary(UnaryFunction::Log, total)), {3});
  }
  b.result(0, a->unbatched ? b.dropDimensions(result, {0}) : result);
  b.result(1, sums);
  // Seed and offset, for the backward part.
  for (unsigned k : {6, 7})
    if (b.hasResult(k))
      b.result(k, a->dropout.state ? b.dropDimensions(b.sliceDimension(a->dropout.state, 0, k - 6, 1), {0})
                                   : b.constantInteger(b.i64(), 0));
}

/// (grad, query, key, value, bias, mask, out, logsumexp, ..., dropout_p, causal, ..., scale).
void backward(NodeImporter &b) {
  std::optional<Attention> a = read(b, 1, 13, 16);
  auto state = [&] { return b.concat({b.reshape(b.tensor(14), {1}), b.reshape(b.tensor(15), {1})}, 0); };
  if (!a || !setDropout(b, *a, b.floating(12), state))
    return;
  Type element = b.element(a->query);
  Value grad = withBatch(b, b.tensor(0)), out = withBatch(b, b.tensor(6));
  Value logsumexp = b.reshape(b.tensor(7), {a->batch(), a->heads(), a->queries()});
  Value delta = b.sum(b.mul(b.castTo(grad, b.f32()), b.castTo(out, b.f32())), {3});
  auto finish = [&](unsigned k, Value value, Value like) {
    value = b.reshape(value, b.shape(like));
    b.result(k, a->unbatched ? b.dropDimensions(value, {0}) : value);
  };
  // The gradient of the bias is as large as all scores.
  if (isBackwardStreamable(*a) && !(b.hasResult(3) && a->bias)) {
    auto [query, key, value] = b.attentionBackward(grad, a->query, a->key, a->value, a->bias, logsumexp,
                                                   b.dropDimensions(delta, {3}), a->scale, a->causal, a->dropout);
    for (auto [k, gradient, like] :
         {std::tuple(0, query, a->query), std::tuple(1, key, a->key), std::tuple(2, value, a->value)})
      if (b.hasResult(k))
        finish(k, gradient, like);
    return;
  }
  Value sums = b.unsqueeze(logsumexp, 3);
  // A row that sees no key has weights 0: its sum is -infinity (or very small), and so are its scores.
  Value all = scores(b, *a);
  Value weights = b.unary(UnaryFunction::Exp, b.sub(all, sums));
  weights = b.select(b.compare(ComparePredicate::Eq, all, -std::numeric_limits<double>::infinity()), 0.0, weights);
  Value products = b.contract(byGroup(b, *a, grad), turned(b, byGroup(b, *a, a->value)), b.f32());
  products = dropped(b, *a, b.reshape(products, b.shape(weights)));
  Value slopes = b.mul(weights, b.sub(products, delta));
  Value rounded = byGroup(b, *a, b.castTo(b.mul(slopes, a->scale), element));
  if (b.hasResult(0))
    finish(0, b.contract(rounded, byGroup(b, *a, a->key), element), a->query);
  if (b.hasResult(1))
    finish(1, b.contract(turned(b, rounded), byGroup(b, *a, a->query), element), a->key);
  if (b.hasResult(2))
    finish(2,
           b.contract(turned(b, byGroup(b, *a, b.castTo(dropped(b, *a, weights), element))), byGroup(b, *a, grad),
                      element),
           a->value);
  if (b.hasResult(3) && a->bias)
    b.result(3, b.sumTo(slopes, b.resultShape(3)));
}

constexpr Registration kImporters[] = {
    {"aten._scaled_dot_product_fused_attention_overrideable.default", "TTTtFBBf", forward},
    {"aten._scaled_dot_product_fused_attention_overrideable_backward.default", "TTTTtMTTttIIFBttf", backward},
};

} // namespace

ArrayRef<Registration> mlir::neuron::attentionImporters() { return kImporters; }
