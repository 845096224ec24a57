// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "lib/Reference/Evaluator.h"

#include <cmath>
#include <limits>

#include "dialects/Neuron/NeuronAttentionOps.h"
#include "dialects/Neuron/NeuronIndexingOps.h"
#include "dialects/Neuron/NeuronViews.h"
#include "lib/Reference/ScalarFunctions.h"
#include "neuron/Support/Text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::neuron;
using namespace mlir::neuron::reference;
using neuroncore::cat;
using neuroncore::Error;
using neuroncore::ErrorKind;
using neuroncore::Expected;
using neuroncore::Status;

namespace {

using Index = SmallVector<int64_t, 8>;

/// Calls `visit(index, position)` for every element in row-major order.
template <typename Visit> void forEachElement(ArrayRef<int64_t> shape, Visit visit) {
  int64_t total = 1;
  for (int64_t size : shape)
    total *= size;
  Index index(shape.size(), 0);
  for (int64_t position = 0; position < total; ++position) {
    visit(ArrayRef<int64_t>(index), position);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
}

int64_t dot(ArrayRef<int64_t> index, ArrayRef<int64_t> strides) {
  int64_t sum = 0;
  for (auto [i, stride] : llvm::zip(index, strides))
    sum += i * stride;
  return sum;
}

/// Strides with which a tensor of `shape` repeats its dimensions of size 1.
SmallVector<int64_t> repeatingStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides = contiguousStrides(shape);
  for (auto [d, size] : llvm::enumerate(shape))
    if (size == 1)
      strides[d] = 0;
  return strides;
}

class Evaluator {
public:
  Expected<std::vector<HostTensor>> run(func::FuncOp function, std::vector<HostTensor> arguments) {
    if (arguments.size() != function.getNumArguments())
      return Error(ErrorKind::InvalidInput,
                   cat("expected ", function.getNumArguments(), " arguments but got ", arguments.size()));
    for (auto [i, argument] : llvm::enumerate(arguments)) {
      if (argument.type != function.getArgument(i).getType())
        return Error(ErrorKind::InvalidInput, cat("expected argument ", i, " of the function's type"));
      bind(function.getArgument(i), std::move(argument));
    }
    return block(function.getBody().front());
  }

private:
  /// Evaluates up to the terminator and returns its operands.
  Expected<std::vector<HostTensor>> block(Block &body) {
    for (Operation &op : body) {
      if (isa<func::ReturnOp, YieldOp>(op)) {
        std::vector<HostTensor> results;
        for (Value value : op.getOperands())
          results.push_back(get(value));
        return results;
      }
      if (Status status = operation(&op); !status)
        return status.error().withContext(op.getName().getStringRef().str());
    }
    return Error(ErrorKind::InvalidInput, "expected a block with a terminator");
  }

  void bind(Value value, HostTensor tensor) { values.insert_or_assign(value, std::move(tensor)); }
  const HostTensor &get(Value value) const { return values.find(value)->second; }

  Status operation(Operation *op) {
    if (auto kernel = dyn_cast<KernelOp>(op))
      return evaluateKernel(kernel);
    if (auto call = dyn_cast<CallOp>(op))
      return evaluateCall(call);
    if (auto attention = dyn_cast<AttentionOp>(op))
      return evaluateAttention(attention);
    if (auto backward = dyn_cast<AttentionBackwardOp>(op))
      return evaluateAttentionBackward(backward);
    if (isElementwise(op))
      return elementwise(op);
    if (isView(op))
      return view(op);
    HostTensor result(RankedTensorType::get({}, Float32Type::get(op->getContext())));
    if (op->getNumResults() == 1)
      if (auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType()))
        result = HostTensor(type);
    Status status = llvm::TypeSwitch<Operation *, Status>(op)
                        .Case([&](ConstantOp o) { return constant(o, result); })
                        .Case([&](IotaOp o) { return iota(o, result); })
                        .Case([&](RandomOp o) { return random(o, result); })
                        .Case([&](ReduceOp o) { return reduce(o, result); })
                        .Case([&](ArgReduceOp o) { return argReduce(o, result); })
                        .Case([&](ScanOp o) { return scan(o, result); })
                        .Case([&](ConcatOp o) { return concat(o, result); })
                        .Case([&](InsertOp o) { return insert(o, result); })
                        .Case([&](GatherOp o) { return gather(o, result); })
                        .Case([&](ScatterOp o) { return scatter(o, result); })
                        .Case([&](ContractOp o) { return contract(o, result); })
                        .Default([&](Operation *) {
                          return Status(Error(ErrorKind::Unsupported, "expected a whole-tensor neuron operation"));
                        });
    if (status)
      bind(op->getResult(0), std::move(result));
    return status;
  }

  Status evaluateKernel(KernelOp kernel) {
    Block &body = kernel.getBody().front();
    for (auto [argument, input] : llvm::zip(body.getArguments(), kernel.getInputs()))
      bind(argument, get(input));
    Expected<std::vector<HostTensor>> results = block(body);
    if (!results)
      return results.error();
    for (auto [k, tensor] : llvm::enumerate(*results))
      bind(kernel.getResult(k), std::move(tensor));
    return Status::success();
  }

  Status evaluateCall(CallOp call) {
    auto callee = call->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(call.getCallee());
    if (!callee)
      return Error(ErrorKind::InvalidInput, cat("expected a function @", call.getCallee().str()));
    std::vector<HostTensor> operands;
    for (Value operand : call.getOperands())
      operands.push_back(get(operand));
    Expected<std::vector<HostTensor>> results = Evaluator().run(callee, std::move(operands));
    if (!results)
      return results.error();
    for (auto [k, tensor] : llvm::enumerate(*results))
      bind(call.getResult(k), std::move(tensor));
    return Status::success();
  }

  //===-- Sources ----------------------------------------------------------------------------------------------------

  Status constant(ConstantOp op, HostTensor &result) {
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    if (!dense)
      return Error(ErrorKind::Unsupported, "expected a dense constant");
    int64_t i = 0;
    if (result.isFloat())
      for (APFloat value : dense.getValues<APFloat>())
        result.floats[i++] = static_cast<float>(value.convertToDouble());
    else
      for (APInt value : dense.getValues<APInt>())
        result.integers[i++] = wrapTo(result.type.getElementType(), static_cast<int64_t>(value.getZExtValue()));
    return Status::success();
  }

  Status iota(IotaOp op, HostTensor &result) {
    Type element = result.type.getElementType();
    forEachElement(result.type.getShape(), [&](ArrayRef<int64_t> index, int64_t position) {
      int64_t value = op.getOffset() + dot(index, op.getSteps());
      if (result.isFloat())
        result.floats[position] = roundTo(element, static_cast<double>(value));
      else
        result.integers[position] = wrapTo(element, value);
    });
    return Status::success();
  }

  Status random(RandomOp op, HostTensor &result) {
    const HostTensor &state = get(op.getState());
    if (state.size() != 2)
      return Error(ErrorKind::InvalidInput, "expected a state of (seed, offset)");
    uint64_t seed = state.integers[0], offset = uint64_t(state.integers[1]) + op.getIncrement();
    int64_t base = op.getIndexOffset() + (op.getIndex() ? get(op.getIndex()).integers.front() : 0);
    Type element = result.type.getElementType();
    forEachElement(result.type.getShape(), [&](ArrayRef<int64_t> index, int64_t position) {
      uint64_t number = base + dot(index, op.getIndexSteps());
      if (op.getDistribution() == RandomDistribution::Bits)
        result.integers[position] = wrapTo(element, philoxWord(seed, offset, number));
      else
        result.floats[position] = roundTo(element, philoxFloat(op.getDistribution(), seed, offset, number));
    });
    return Status::success();
  }

  //===-- Elementwise ------------------------------------------------------------------------------------------------

  Status elementwise(Operation *op) {
    HostTensor result(typeOf(op->getResult(0)));
    SmallVector<const HostTensor *, 3> operands;
    SmallVector<SmallVector<int64_t>, 3> strides;
    for (Value operand : op->getOperands()) {
      operands.push_back(&get(operand));
      strides.push_back(repeatingStrides(typeOf(operand).getShape()));
    }
    bool dividesByZero = false;
    forEachElement(result.type.getShape(), [&](ArrayRef<int64_t> index, int64_t position) {
      SmallVector<int64_t, 3> at;
      for (const auto &s : strides)
        at.push_back(dot(index, s));
      dividesByZero |= !element(op, operands, at, result, position);
    });
    if (dividesByZero)
      return Error(ErrorKind::Numerical, "integer division by zero");
    bind(op->getResult(0), std::move(result));
    return Status::success();
  }

  /// One element; false on division by zero.
  static bool element(Operation *op, ArrayRef<const HostTensor *> operands, ArrayRef<int64_t> at, HostTensor &result,
                      int64_t position) {
    const HostTensor &first = *operands.front();
    Type type = result.type.getElementType();
    auto setFloat = [&](double value) { result.floats[position] = roundTo(type, value); };
    auto setInteger = [&](int64_t value) { result.integers[position] = wrapTo(type, value); };
    if (auto unary = dyn_cast<UnaryOp>(op)) {
      if (!first.isFloat())
        setInteger(unaryInteger(unary.getFunction(), first.type.getElementType(), first.integers[at[0]]));
      else if (!result.isFloat())
        setInteger(classify(unary.getFunction(), first.floats[at[0]]));
      else
        setFloat(unaryFloat(unary.getFunction(), first.floats[at[0]]));
    } else if (auto binary = dyn_cast<BinaryOp>(op)) {
      if (first.isFloat()) {
        setFloat(binaryFloat(binary.getFunction(), type, first.floats[at[0]], operands[1]->floats[at[1]]));
      } else {
        std::optional<int64_t> value =
            binaryInteger(binary.getFunction(), type, first.integers[at[0]], operands[1]->integers[at[1]]);
        if (!value)
          return false;
        setInteger(*value);
      }
    } else if (auto compare = dyn_cast<CompareOp>(op)) {
      setInteger(first.isFloat()
                     ? compareValues(compare.getPredicate(), first.floats[at[0]], operands[1]->floats[at[1]])
                     : compareValues(compare.getPredicate(), first.integers[at[0]], operands[1]->integers[at[1]]));
    } else if (isa<SelectOp>(op)) {
      unsigned chosen = first.integers[at[0]] ? 1 : 2;
      result.copyElement(position, *operands[chosen], at[chosen]);
    } else if (first.isFloat()) { // cast
      if (result.isFloat())
        setFloat(first.floats[at[0]]);
      else
        result.integers[position] = floatToInteger(type, first.floats[at[0]]);
    } else if (result.isFloat()) {
      setFloatFromInteger(result, position, first.integers[at[0]]);
    } else {
      setInteger(first.integers[at[0]]);
    }
    return true;
  }

  /// Rounded to f32 first, as PyTorch converts integers to the 16-bit types.
  static void setFloatFromInteger(HostTensor &result, int64_t position, int64_t value) {
    result.floats[position] = roundTo(result.type.getElementType(), static_cast<float>(value));
  }

  //===-- Reductions -------------------------------------------------------------------------------------------------

  /// Position in the result of a reduction that keeps its dimensions.
  static SmallVector<int64_t> reducedStrides(RankedTensorType result, ArrayRef<int64_t> dims) {
    SmallVector<int64_t> strides = contiguousStrides(result.getShape());
    for (int64_t d : dims)
      strides[d] = 0;
    return strides;
  }

  static double combineFloat(ReduceKind kind, double a, double b) {
    switch (kind) {
    case ReduceKind::Sum:
      return a + b;
    case ReduceKind::Prod:
      return a * b;
    case ReduceKind::Max:
      return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b);
    default:
      return std::isnan(a) || std::isnan(b) ? std::nan("") : std::min(a, b);
    }
  }

  static int64_t combineInteger(ReduceKind kind, Type element, int64_t a, int64_t b) {
    switch (kind) {
    case ReduceKind::Sum:
      return wrapTo(element, static_cast<int64_t>(uint64_t(a) + uint64_t(b)));
    case ReduceKind::Prod:
      return wrapTo(element, static_cast<int64_t>(uint64_t(a) * uint64_t(b)));
    case ReduceKind::Max:
      return std::max(a, b);
    case ReduceKind::Min:
      return std::min(a, b);
    case ReduceKind::And:
      return a & b;
    case ReduceKind::Or:
      return a | b;
    case ReduceKind::Xor:
      return a ^ b;
    }
    return 0;
  }

  static double neutralFloat(ReduceKind kind) {
    switch (kind) {
    case ReduceKind::Prod:
      return 1;
    case ReduceKind::Max:
      return -std::numeric_limits<double>::infinity();
    case ReduceKind::Min:
      return std::numeric_limits<double>::infinity();
    default:
      return 0;
    }
  }

  static int64_t neutralInteger(ReduceKind kind, Type element) {
    unsigned width = element.getIntOrFloatBitWidth();
    bool isUnsigned = width == 1 || element.isUnsignedInteger();
    APInt least = isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
    APInt greatest = isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
    switch (kind) {
    case ReduceKind::Prod:
      return 1;
    case ReduceKind::And:
      return wrapTo(element, -1);
    case ReduceKind::Max:
      return isUnsigned ? least.getZExtValue() : least.getSExtValue();
    case ReduceKind::Min:
      return isUnsigned ? greatest.getZExtValue() : greatest.getSExtValue();
    default:
      return 0;
    }
  }

  Status reduce(ReduceOp op, HostTensor &result) {
    const HostTensor &operand = get(op.getOperand());
    Type element = result.type.getElementType();
    SmallVector<int64_t> strides = reducedStrides(result.type, op.getDims());
    ReduceKind kind = op.getKind();
    if (operand.isFloat()) {
      std::vector<double> sums(result.size(), neutralFloat(kind));
      forEachElement(operand.type.getShape(), [&](ArrayRef<int64_t> index, int64_t position) {
        double &sum = sums[dot(index, strides)];
        sum = combineFloat(kind, sum, operand.floats[position]);
      });
      for (int64_t i = 0; i < result.size(); ++i)
        result.floats[i] = roundTo(element, static_cast<float>(sums[i]));
      return Status::success();
    }
    std::fill(result.integers.begin(), result.integers.end(), neutralInteger(kind, element));
    forEachElement(operand.type.getShape(), [&](ArrayRef<int64_t> index, int64_t position) {
      int64_t &sum = result.integers[dot(index, strides)];
      sum = combineInteger(kind, element, sum, operand.integers[position]);
    });
    return Status::success();
  }

  Status argReduce(ArgReduceOp op, HostTensor &result) {
    const HostTensor &operand = get(op.getOperand());
    SmallVector<int64_t> strides = reducedStrides(result.type, op.getDims());
    // Index within the reduced dimensions, row-major.
    SmallVector<int64_t> within(operand.type.getRank(), 0);
    int64_t stride = 1;
    for (int64_t d : llvm::reverse(op.getDims())) {
      within[d] = stride;
      stride *= operand.type.getDimSize(d);
    }
    if (stride == 0 && result.size() != 0)
      return Error(ErrorKind::InvalidInput, "expected at least one element to choose from");
    bool isMax = op.getKind() == ReduceKind::Max;
    std::vector<int64_t> best(result.size(), -1);
    forEachElement(operand.type.getShape(), [&](ArrayRef<int64_t> index, int64_t position) {
      int64_t slot = dot(index, strides);
      bool wins = best[slot] < 0;
      if (!wins && operand.isFloat()) {
        float value = operand.floats[position], known = operand.floats[best[slot]];
        wins = !std::isnan(known) && (std::isnan(value) || (isMax ? value > known : value < known));
      } else if (!wins) {
        int64_t value = operand.integers[position], known = operand.integers[best[slot]];
        wins = isMax ? value > known : value < known;
      }
      if (wins) {
        best[slot] = position;
        result.integers[slot] = dot(index, within);
      }
    });
    return Status::success();
  }

  Status scan(ScanOp op, HostTensor &result) {
    const HostTensor &operand = get(op.getOperand());
    ArrayRef<int64_t> shape = operand.type.getShape();
    Type element = result.type.getElementType();
    int64_t dim = op.getDim(), stride = contiguousStrides(shape)[dim];
    std::vector<double> running(operand.size());
    forEachElement(shape, [&](ArrayRef<int64_t> index, int64_t position) {
      bool isFirst = index[dim] == 0;
      if (operand.isFloat()) {
        running[position] = isFirst ? operand.floats[position]
                                    : combineFloat(op.getKind(), running[position - stride], operand.floats[position]);
        result.floats[position] = roundTo(element, static_cast<float>(running[position]));
      } else {
        result.integers[position] = isFirst ? wrapTo(element, operand.integers[position])
                                            : combineInteger(op.getKind(), element, result.integers[position - stride],
                                                             operand.integers[position]);
      }
    });
    return Status::success();
  }

  //===-- Views and assembly -----------------------------------------------------------------------------------------

  Status view(Operation *op) {
    const HostTensor &operand = get(op->getOperand(0));
    HostTensor result(typeOf(op->getResult(0)));
    ArrayRef<int64_t> shape = operand.type.getShape();
    SmallVector<int64_t> strides = contiguousStrides(shape), used;
    int64_t offset = 0;
    if (isa<ReshapeOp>(op)) {
      used = contiguousStrides(result.type.getShape());
    } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
      for (int64_t d : transpose.getPermutation())
        used.push_back(strides[d]);
    } else if (isa<BroadcastOp>(op)) {
      used = repeatingStrides(shape);
    } else if (auto slice = dyn_cast<SliceOp>(op)) {
      for (size_t d = 0; d < shape.size(); ++d) {
        offset += slice.getStarts()[d] * strides[d];
        used.push_back(slice.getSteps()[d] * strides[d]);
      }
    } else {
      auto strided = cast<AsStridedOp>(op);
      offset = strided.getOffset();
      used.assign(strided.getStrides().begin(), strided.getStrides().end());
    }
    forEachElement(result.type.getShape(), [&](ArrayRef<int64_t> index, int64_t position) {
      result.copyElement(position, operand, offset + dot(index, used));
    });
    bind(op->getResult(0), std::move(result));
    return Status::success();
  }

  Status concat(ConcatOp op, HostTensor &result) {
    SmallVector<int64_t> strides = contiguousStrides(result.type.getShape());
    int64_t start = 0;
    for (Value value : op.getOperands()) {
      const HostTensor &operand = get(value);
      forEachElement(operand.type.getShape(), [&](ArrayRef<int64_t> index, int64_t position) {
        result.copyElement(dot(index, strides) + start * strides[op.getDim()], operand, position);
      });
      start += operand.type.getDimSize(op.getDim());
    }
    return Status::success();
  }

  Status insert(InsertOp op, HostTensor &result) {
    result = get(op.getDestination());
    const HostTensor &source = get(op.getSource());
    SmallVector<int64_t> strides = contiguousStrides(result.type.getShape());
    forEachElement(source.type.getShape(), [&](ArrayRef<int64_t> index, int64_t position) {
      int64_t to = 0;
      for (size_t d = 0; d < index.size(); ++d)
        to += (op.getStarts()[d] + index[d] * op.getSteps()[d]) * strides[d];
      result.copyElement(to, source, position);
    });
    return Status::success();
  }

  /// Calls `visit` with the row of `whole` and the position in `rows` for each element of `rows`, which has one row per
  /// index.
  Status forEachIndexed(const HostTensor &index, RankedTensorType rows, RankedTensorType whole, int64_t dim,
                        llvm::function_ref<void(int64_t, int64_t)> visit) {
    for (int64_t row : index.integers)
      if (row < 0 || row >= whole.getDimSize(dim))
        return Error(ErrorKind::OutOfBounds,
                     cat("index ", row, " is out of bounds: expected 0 <= index < ", whole.getDimSize(dim)));
    SmallVector<int64_t> strides = contiguousStrides(whole.getShape());
    forEachElement(rows.getShape(), [&](ArrayRef<int64_t> at, int64_t position) {
      visit(dot(at, strides) + (index.integers[at[dim]] - at[dim]) * strides[dim], position);
    });
    return Status::success();
  }

  Status gather(GatherOp op, HostTensor &result) {
    const HostTensor &source = get(op.getSource());
    return forEachIndexed(get(op.getIndex()), result.type, source.type, op.getDim(),
                          [&](int64_t from, int64_t position) { result.copyElement(position, source, from); });
  }

  Status scatter(ScatterOp op, HostTensor &result) {
    result = get(op.getDestination());
    const HostTensor &source = get(op.getSource());
    Type element = result.type.getElementType();
    const int64_t dim = op.getDim(), rowStep = contiguousStrides(source.type.getShape())[dim];
    // Of the rows of a block that are equal by promise, one is added.
    llvm::DenseSet<std::pair<int64_t, int64_t>> added;
    // Elements of one place come by ascending index.
    return forEachIndexed(get(op.getIndex()), source.type, result.type, dim, [&](int64_t to, int64_t position) {
      if (!op.getAccumulate())
        return result.copyElement(to, source, position);
      int64_t block = position / rowStep % source.type.getDimSize(dim) / ScatterOp::kBlock;
      if (op.getBlocked() && !added.insert({block, to}).second)
        return;
      if (result.isFloat())
        result.floats[to] = roundTo(element, result.floats[to] + source.floats[position]);
      else if (element.isInteger(1))
        result.integers[to] |= source.integers[position];
      else
        result.integers[to] =
            wrapTo(element, static_cast<int64_t>(uint64_t(result.integers[to]) + uint64_t(source.integers[position])));
    });
  }

  /// What dropout multiplies the weight of a query (`row`, row-major) and a key with.
  template <typename OpTy> double keptShare(OpTy op, int64_t row, int64_t key) {
    if (!op.getState())
      return 1;
    const HostTensor &state = get(op.getState());
    const double kept = 1 - op.getDropout()->convertToDouble();
    const float number = philoxFloat(RandomDistribution::Uniform, state.integers[0], state.integers[1],
                                     get(op.getIndex()).integers[row] + key);
    return number < float(kept) ? 1 / kept : 0;
  }

  Status evaluateAttention(AttentionOp op) {
    const HostTensor &query = get(op.getQuery()), &key = get(op.getKey()), &value = get(op.getValue());
    const HostTensor *mask = op.getMask() ? &get(op.getMask()) : nullptr;
    HostTensor result(cast<RankedTensorType>(op.getResult().getType()));
    HostTensor sums(cast<RankedTensorType>(op.getLogsumexp().getType()));
    Type element = result.type.getElementType();
    int64_t depth = query.type.getDimSize(3), keys = key.type.getDimSize(2), groups = key.type.getDimSize(1);
    int64_t heads = query.type.getDimSize(1);
    int64_t columns = value.type.getDimSize(3);
    double scale = op.getScale().convertToDouble();
    std::vector<double> scores(keys);
    forEachElement(sums.type.getShape(), [&](ArrayRef<int64_t> at, int64_t row) {
      int64_t group = at[0] * groups + at[1] / (heads / groups);
      double largest = -std::numeric_limits<double>::infinity(), total = 0;
      for (int64_t k = 0; k < keys; ++k) {
        double score = 0;
        for (int64_t d = 0; d < depth; ++d)
          score += double(query.floats[row * depth + d]) * key.floats[(group * keys + k) * depth + d];
        score *= scale;
        if (mask) {
          int64_t position = 0;
          for (unsigned d = 0; d < 3; ++d)
            position = position * mask->type.getDimSize(d) + (mask->type.getDimSize(d) == 1 ? 0 : at[d]);
          position = position * keys + k;
          if (mask->isFloat())
            score += mask->floats[position];
          else if (!mask->integers[position])
            score = op.getFill()->convertToDouble();
        }
        if (op.getCausal() && k > at[2])
          score = -std::numeric_limits<double>::infinity();
        scores[k] = score;
        largest = std::max(largest, score);
      }
      for (double &score : scores) {
        score = std::isinf(largest) && largest < 0 ? 0 : std::exp(score - largest);
        total += score;
      }
      sums.floats[row] = float(largest + std::log(total));
      for (int64_t c = 0; c < columns; ++c) {
        double sum = 0;
        for (int64_t k = 0; k < keys; ++k)
          sum += keptShare(op, row, k) * double(roundTo(element, scores[k])) *
                 value.floats[(group * keys + k) * columns + c];
        result.floats[row * columns + c] = roundTo(element, total > 0 || op.getStrict() ? sum / total : 0);
      }
    });
    bind(op.getResult(), std::move(result));
    bind(op.getLogsumexp(), std::move(sums));
    return Status::success();
  }

  Status evaluateAttentionBackward(AttentionBackwardOp op) {
    const HostTensor &gradient = get(op.getGradient()), &query = get(op.getQuery()), &key = get(op.getKey());
    const HostTensor &value = get(op.getValue()), &sums = get(op.getLogsumexp()), &delta = get(op.getDelta());
    const HostTensor *mask = op.getMask() ? &get(op.getMask()) : nullptr;
    const int64_t depth = query.type.getDimSize(3), keys = key.type.getDimSize(2), groups = key.type.getDimSize(1);
    const int64_t heads = query.type.getDimSize(1), columns = value.type.getDimSize(3);
    const double scale = op.getScale().convertToDouble();
    Type element = query.type.getElementType();
    std::vector<double> ofQuery(query.floats.size()), ofKey(key.floats.size()), ofValue(value.floats.size());
    forEachElement(sums.type.getShape(), [&](ArrayRef<int64_t> at, int64_t row) {
      const int64_t group = at[0] * groups + at[1] / (heads / groups);
      for (int64_t k = 0; k < keys && !(op.getCausal() && k > at[2]); ++k) {
        const int64_t keyRow = group * keys + k;
        double score = 0, product = 0;
        for (int64_t d = 0; d < depth; ++d)
          score += double(query.floats[row * depth + d]) * key.floats[keyRow * depth + d];
        score *= scale;
        if (mask) {
          int64_t position = 0;
          for (unsigned d = 0; d < 3; ++d)
            position = position * mask->type.getDimSize(d) + (mask->type.getDimSize(d) == 1 ? 0 : at[d]);
          position = position * keys + k;
          if (mask->isFloat())
            score += mask->floats[position];
          else if (!mask->integers[position])
            score = op.getFill()->convertToDouble();
        }
        if (std::isinf(score) && score < 0)
          continue;
        for (int64_t c = 0; c < columns; ++c)
          product += double(gradient.floats[row * columns + c]) * value.floats[keyRow * columns + c];
        const double weight = std::exp(score - sums.floats[row]);
        const double share = keptShare(op, row, k);
        const double slope = roundTo(element, weight * (share * product - delta.floats[row]));
        for (int64_t d = 0; d < depth; ++d) {
          ofQuery[row * depth + d] += scale * slope * key.floats[keyRow * depth + d];
          ofKey[keyRow * depth + d] += scale * slope * query.floats[row * depth + d];
        }
        for (int64_t c = 0; c < columns; ++c)
          ofValue[keyRow * columns + c] += share * roundTo(element, weight) * gradient.floats[row * columns + c];
      }
    });
    for (auto [result, sum] : {std::pair(op.getQueryGradient(), &ofQuery), std::pair(op.getKeyGradient(), &ofKey),
                               std::pair(op.getValueGradient(), &ofValue)}) {
      HostTensor tensor(typeOf(result));
      for (size_t i = 0; i < sum->size(); ++i)
        tensor.floats[i] = roundTo(element, (*sum)[i]);
      bind(result, std::move(tensor));
    }
    return Status::success();
  }

  Status contract(ContractOp op, HostTensor &result) {
    const HostTensor &lhs = get(op.getLhs()), &rhs = get(op.getRhs());
    int64_t inner = lhs.type.getDimSize(2), rows = lhs.type.getDimSize(1), columns = rhs.type.getDimSize(2);
    Type element = result.type.getElementType();
    forEachElement(result.type.getShape(), [&](ArrayRef<int64_t> index, int64_t position) {
      double sum = 0;
      uint64_t whole = 0;
      for (int64_t k = 0; k < inner; ++k) {
        int64_t l = (index[0] * rows + index[1]) * inner + k, r = (index[0] * inner + k) * columns + index[2];
        if (lhs.isFloat())
          sum += static_cast<double>(lhs.floats[l]) * rhs.floats[r];
        else
          whole += uint64_t(lhs.integers[l]) * uint64_t(rhs.integers[r]);
      }
      if (result.isFloat())
        result.floats[position] = roundTo(element, static_cast<float>(sum));
      else
        result.integers[position] = wrapTo(element, static_cast<int64_t>(whole));
    });
    return Status::success();
  }

  llvm::DenseMap<Value, HostTensor> values;
};

} // namespace

Expected<std::vector<HostTensor>> mlir::neuron::reference::evaluate(func::FuncOp function,
                                                                    std::vector<HostTensor> arguments) {
  return Evaluator().run(function, std::move(arguments));
}
