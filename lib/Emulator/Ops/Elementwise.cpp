// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// tensor_tensor, tensor_scalar, scalar_tensor_tensor, reciprocal, tensor_scalar_reduce, activation: fp32 arithmetic
// with free casts on both sides.

#include <algorithm>

#include "lib/Emulator/Ops/Ops.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::emulator {
namespace {

using isa::AluOp;
using isa::Instruction;
using isa::ReduceCommand;

/// fp32 values per nanosecond of simple kernels, for the decision to divide an instruction among threads.
constexpr double kSimpleNsPerElement = 0.2;

int64_t estimate(const Operand &operand, double nsPerElement) {
  return int64_t(double(operand.partitions) * double(operand.n) * nsPerElement);
}

Storage storageIn(const BlockPlan &plan, size_t index, const Operand &operand) {
  Storage storage = Storage::F32;
  if (plan.inPlace[index])
    storageOf(operand.dtype, storage);
  return storage;
}

bool isUnary(AluOp op) { return isa::aluOpInfo(op).unary; }

/// One ALU operator with a scalar operand.
struct ScalarStep {
  AluOp op = AluOp::Bypass;
  bool reverse = false;
  ScalarRef scalar;
  bool isIdentity() const { return op == AluOp::Bypass && !reverse; }
};

/// (in op0 scalar0) op1 scalar1 on blocks of rows; used by every instruction that has scalar operators.
class ScalarSteps {
public:
  ScalarSteps(ScalarStep first, ScalarStep second) : first_(first), second_(second) {
    if (first_.isIdentity())
      std::swap(first_, second_);
  }

  /// The one-pass kernel for operands of these storages, or null.
  TensorScalarKernel fused(Storage in, Storage out) {
    const int i = pairIndex(first_.op, first_.reverse, negateFirst_);
    const int j = pairIndex(second_.op, second_.reverse, negateSecond_);
    if (i < 0 || j < 0)
      return nullptr;
    return elementwiseTable().pair[i][j][int(in)][int(out)];
  }

  void applyFused(TensorScalarKernel kernel, int64_t rows, int64_t columns, ConstRows in, MutableRows out,
                  const uint8_t *base, int64_t row) const {
    RowScalars s0 = first_.scalar.rows(base, row);
    RowScalars s1 = second_.scalar.rows(base, row);
    s0.flip = negateFirst_ ? 0x80000000u : 0;
    s1.flip = negateSecond_ ? 0x80000000u : 0;
    kernel(rows, columns, in, s0, s1, out);
  }

  /// Any operators, fp32 rows. `flat`: the block is contiguous; `expanded` is room for one block.
  void apply(int64_t rows, int64_t columns, ConstRows in, MutableRows out, const uint8_t *base, int64_t row, bool flat,
             float *expanded) const {
    applyOne(first_, rows, columns, in, out, base, row, flat, expanded);
    if (!second_.isIdentity())
      applyOne(second_, rows, columns, {out.base, out.stride}, out, base, row, flat, expanded);
  }

  bool usesVector() const {
    return (first_.scalar.isVector && !isUnary(first_.op)) || (second_.scalar.isVector && !isUnary(second_.op));
  }

private:
  static void applyOne(const ScalarStep &step, int64_t rows, int64_t columns, ConstRows in, MutableRows out,
                       const uint8_t *base, int64_t row, bool flat, float *expanded) {
    if (!flat) {
      tensorScalarF32(step.op, step.reverse, rows, columns, in, step.scalar.rows(base, row), out);
      return;
    }
    if (!step.scalar.isVector || isUnary(step.op)) {
      tensorScalarF32(step.op, step.reverse, 1, rows * columns, in, RowScalars{&step.scalar.value, 0, 0}, out);
      return;
    }
    // Short rows: the scalars as a tensor of their own.
    const RowScalars scalars = step.scalar.rows(base, row);
    for (int64_t r = 0; r < rows; ++r)
      std::fill(expanded + r * columns, expanded + (r + 1) * columns, scalars.at(r));
    const ConstRows other = {expanded, 0};
    tensorTensorF32(step.op, 1, rows * columns, step.reverse ? other : in, step.reverse ? in : other, out);
  }

  ScalarStep first_, second_;
  bool negateFirst_ = false, negateSecond_ = false;
};

// ---------------------------------------------------------------------------------------------------------------------
// tensor_tensor
// ---------------------------------------------------------------------------------------------------------------------

class TensorTensorOp : public TileOp {
public:
  TensorTensorOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), a_(instruction.tiles[1], context.layout),
        b_(instruction.tiles[2], context.layout), op_(instruction.op0) {
    const Operand *operands[] = {&a_, &b_, &out_};
    plan_ = planBlocks(operands, true);
    kernel_ = elementwiseTable().tensorTensor[int(op_)][int(storageIn(plan_, 0, a_))][int(storageIn(plan_, 1, b_))]
                                             [int(storageIn(plan_, 2, out_))];
    if (!kernel_)
      plan_ = planBlocks(operands, false);
    units_ = out_.partitions;
    nanoseconds_ = estimate(out_, kSimpleNsPerElement);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    const Operand *inputs[] = {&a_, &b_};
    forBlocks(plan_, inputs, out_, machine, worker, begin, end,
              [&](int64_t rows, int64_t columns, const ConstRows *in, MutableRows out, int64_t) {
                if (plan_.flat) {
                  columns *= rows;
                  rows = 1;
                }
                if (kernel_)
                  kernel_(rows, columns, in[0], in[1], out);
                else
                  tensorTensorF32(op_, rows, columns, in[0], in[1], out);
              });
  }

private:
  Operand out_, a_, b_;
  AluOp op_;
  BlockPlan plan_;
  TensorTensorKernel kernel_ = nullptr;
};

// ---------------------------------------------------------------------------------------------------------------------
// tensor_scalar and reciprocal
// ---------------------------------------------------------------------------------------------------------------------

class TensorScalarOp : public TileOp {
public:
  TensorScalarOp(const Operand &out, const Operand &in, ScalarSteps steps) : out_(out), in_(in), steps_(steps) {
    const Operand *operands[] = {&in_, &out_};
    plan_ = planBlocks(operands, true);
    if (!(plan_.flat && steps_.usesVector()))
      kernel_ = steps_.fused(storageIn(plan_, 0, in_), storageIn(plan_, 1, out_));
    if (!kernel_)
      plan_ = planBlocks(operands, false);
    units_ = out_.partitions;
    nanoseconds_ = estimate(out_, kSimpleNsPerElement);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    const Operand *inputs[] = {&in_};
    forBlocks(plan_, inputs, out_, machine, worker, begin, end,
              [&](int64_t rows, int64_t columns, const ConstRows *in, MutableRows out, int64_t row) {
                if (!kernel_)
                  steps_.apply(rows, columns, in[0], out, machine.base, row, plan_.flat, worker.stage[3]);
                else if (plan_.flat)
                  steps_.applyFused(kernel_, 1, rows * columns, in[0], out, machine.base, row);
                else
                  steps_.applyFused(kernel_, rows, columns, in[0], out, machine.base, row);
              });
  }

private:
  Operand out_, in_;
  BlockPlan plan_;
  ScalarSteps steps_;
  TensorScalarKernel kernel_ = nullptr;
};

// ---------------------------------------------------------------------------------------------------------------------
// scalar_tensor_tensor
// ---------------------------------------------------------------------------------------------------------------------

class ScalarTensorTensorOp : public TileOp {
public:
  ScalarTensorTensorOp(const Instruction &instruction, const DecodeContext &context)
      : out_(instruction.tiles[0], context.layout), a_(instruction.tiles[1], context.layout),
        b_(instruction.tiles[2], context.layout),
        steps_({instruction.op0, instruction.reverse0,
                ScalarRef(instruction.scalars[0], instruction.tiles[1], context.layout)},
               {}),
        op_(instruction.op1), reverse_(instruction.reverse1) {
    const Operand *operands[] = {&a_, &b_, &out_};
    units_ = out_.partitions;
    nanoseconds_ = estimate(out_, 2 * kSimpleNsPerElement);
    if (findFused(instruction, context))
      return;
    plan_ = planBlocks(operands, false);
    // The intermediate value needs a buffer: blocks of at most one buffer even when everything is in place.
    plan_.columns = std::min<int64_t>(plan_.columns, kStageElements);
    plan_.rows = std::max<int64_t>(1, kStageElements / plan_.columns);
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    if (fused_) {
      uint8_t *base = machine.base;
      RowScalars scalars = scalar_.rows(base, begin);
      scalars.flip = negate_ ? 0x80000000u : 0;
      fused_(end - begin, out_.n, {a_.row(base, begin), a_.stride}, scalars, {b_.row(base, begin), b_.stride},
             {out_.row(base, begin), out_.stride});
      return;
    }
    const Operand *inputs[] = {&a_, &b_};
    forBlocks(plan_, inputs, out_, machine, worker, begin, end,
              [&](int64_t rows, int64_t columns, const ConstRows *in, MutableRows out, int64_t row) {
                const MutableRows temporary = {worker.stage[4], columns * int64_t(sizeof(float))};
                steps_.apply(rows, columns, in[0], temporary, machine.base, row, plan_.flat, worker.stage[3]);
                const ConstRows first = {temporary.base, temporary.stride};
                const ConstRows &left = reverse_ ? in[1] : first, &right = reverse_ ? first : in[1];
                if (plan_.flat)
                  tensorTensorF32(op_, 1, rows * columns, left, right, out);
                else
                  tensorTensorF32(op_, rows, columns, left, right, out);
              });
  }

private:
  /// The one-pass kernel: contiguous rows of fp32 or bf16 and frequent operators.
  bool findFused(const Instruction &instruction, const DecodeContext &context) {
    Storage a, b, out;
    if (!a_.isContiguous() || !b_.isContiguous() || !out_.isContiguous() || !storageOf(a_.dtype, a) ||
        !storageOf(b_.dtype, b) || !storageOf(out_.dtype, out) || !mayWriteWhileReading(out_, a_) ||
        !mayWriteWhileReading(out_, b_))
      return false;
    const int first = pairIndex(instruction.op0, instruction.reverse0, negate_);
    const int row = first == 1 ? 0 : first == 3 ? 1 : -1;
    const int column = op_ == AluOp::Add        ? 0
                       : op_ == AluOp::Subtract ? (reverse_ ? 2 : 1)
                       : op_ == AluOp::Multiply ? 3
                                                : -1;
    if (row < 0 || column < 0)
      return false;
    scalar_ = ScalarRef(instruction.scalars[0], instruction.tiles[1], context.layout);
    fused_ = elementwiseTable().scalarTensorTensor[row][column][int(a)][int(b)][int(out)];
    return true;
  }

  Operand out_, a_, b_;
  BlockPlan plan_;
  ScalarSteps steps_;
  AluOp op_;
  bool reverse_;
  ScalarTensorTensorKernel fused_ = nullptr;
  ScalarRef scalar_;
  bool negate_ = false;
};

// ---------------------------------------------------------------------------------------------------------------------
// Running reductions of activation and tensor_scalar_reduce
// ---------------------------------------------------------------------------------------------------------------------

/// What an instruction's reduce_command does with the accumulator registers, and the optional read-out. The registers
/// are numbered by the partitions of the source tile.
class RunningReduction {
public:
  RunningReduction() = default;
  RunningReduction(ReduceCommand command, ReduceOp op, const isa::TilePattern &result, const ImageLayout &layout)
      : command_(command), op_(op) {
    if (result.present())
      result_ = Operand(result, layout);
  }

  bool needsValues() const {
    return command_ == ReduceCommand::Reduce || command_ == ReduceCommand::ResetReduce ||
           command_ == ReduceCommand::LoadReduce;
  }
  bool isActive() const { return command_ != ReduceCommand::Idle; }
  ReduceOp op() const { return op_; }

  /// `value`: this instruction's reduction of row `row`.
  void finish(int64_t row, float value, float *registers, int startPartition, uint8_t *base) const {
    float &accumulator = registers[startPartition + row];
    switch (command_) {
    case ReduceCommand::Idle:
      return;
    case ReduceCommand::Reset:
      accumulator = reduceIdentity(op_);
      break;
    case ReduceCommand::Reduce:
      accumulator = reduceCombine(op_, accumulator, value);
      break;
    case ReduceCommand::ResetReduce:
      accumulator = value;
      break;
    case ReduceCommand::LoadReduce: {
      float loaded = reduceIdentity(op_);
      if (result_.present())
        loadRange(result_, result_.row(base, row), 0, 1, &loaded);
      accumulator = reduceCombine(op_, loaded, value);
      break;
    }
    }
    if (result_.present())
      storeRange(result_, result_.row(base, row), 0, 1, &accumulator);
  }

private:
  ReduceCommand command_ = ReduceCommand::Idle;
  ReduceOp op_ = ReduceOp::Add;
  Operand result_;
};

/// Element-wise work whose fp32 result is also reduced along the row.
class ReducingOp : public TileOp {
public:
  ReducingOp(const Operand &out, const Operand &in, RunningReduction reduction, bool scalarEngine)
      : out_(out), in_(in), reduction_(reduction), scalarEngine_(scalarEngine) {
    const Operand *operands[] = {&in_, &out_};
    plan_ = planBlocks(operands, false);
    units_ = out_.partitions;
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    const Operand *inputs[] = {&in_};
    if (!reduction_.isActive()) {
      forBlocks(plan_, inputs, out_, machine, worker, begin, end,
                [&](int64_t rows, int64_t columns, const ConstRows *in, MutableRows out, int64_t row) {
                  compute(machine, worker, rows, columns, in[0], out, row, plan_.flat);
                });
      return;
    }
    float *registers = scalarEngine_ ? machine.scalarAccumulators : machine.vectorAccumulators;
    const ReduceTable &table = reduceTable();
    const int op = int(reduction_.op());
    if (out_.n <= kStageElements) {
      runWholeRows(machine, worker, begin, end, registers);
      return;
    }
    // Long rows: one row at a time in chunks that stay in the first-level cache, partial sums across chunks.
    for (int64_t row = begin; row < end; ++row) {
      std::fill_n(worker.partials, kReductionPartials, reduceIdentity(reduction_.op()));
      for (int64_t c0 = 0; c0 < out_.n; c0 += kStageElements) {
        const int64_t columns = std::min<int64_t>(kStageElements, out_.n - c0);
        const ConstRows in = chunkIn(machine, worker, row, c0, columns);
        float *result = worker.stage[1];
        const bool inPlace = isPlain(out_);
        if (inPlace)
          result = reinterpret_cast<float *>(out_.row(machine.base, row) + c0 * sizeof(float));
        compute(machine, worker, 1, columns, in, {result, 0}, row, false);
        if (reduction_.needsValues())
          table.accumulate[op](columns, result, worker.partials);
        if (!inPlace)
          storeRange(out_, out_.row(machine.base, row), c0, columns, result);
      }
      reduction_.finish(row, table.finish[op](worker.partials), registers, in_.startPartition, machine.base);
    }
  }

protected:
  virtual void compute(Machine &machine, Worker &worker, int64_t rows, int64_t columns, ConstRows in, MutableRows out,
                       int64_t row, bool flat) const = 0;
  Operand out_, in_;
  RunningReduction reduction_;

private:
  static bool isPlain(const Operand &operand) { return operand.dtype == isa::Dtype::F32 && operand.isContiguous(); }

  ConstRows chunkIn(Machine &machine, Worker &worker, int64_t row, int64_t c0, int64_t columns) const {
    if (isPlain(in_))
      return {in_.row(machine.base, row) + c0 * sizeof(float), 0};
    loadRange(in_, in_.row(machine.base, row), c0, columns, worker.stage[0]);
    return {worker.stage[0], 0};
  }

  /// Rows that fit a buffer: blocks of several rows, each reduced whole.
  void runWholeRows(Machine &machine, Worker &worker, int begin, int end, float *registers) const {
    const ReduceTable &table = reduceTable();
    const int op = int(reduction_.op());
    const int64_t n = out_.n;
    const int64_t step = std::max<int64_t>(1, kStageElements / n);
    const bool inPlaceIn = isPlain(in_), inPlaceOut = isPlain(out_);
    const int64_t bytes = n * int64_t(sizeof(float));
    float values[kStageElements];
    for (int64_t r0 = begin; r0 < end; r0 += step) {
      const int64_t rows = std::min<int64_t>(step, end - r0);
      ConstRows in = {in_.row(machine.base, r0), in_.stride};
      if (!inPlaceIn) {
        loadBlock(in_, machine.base, r0, rows, 0, n, worker.stage[0]);
        in = {worker.stage[0], bytes};
      }
      MutableRows out = {worker.stage[1], bytes};
      if (inPlaceOut)
        out = {out_.row(machine.base, r0), out_.stride};
      compute(machine, worker, rows, n, in, out, r0, false);
      if (reduction_.needsValues())
        table.rows[op][0](rows, n, {out.base, out.stride}, values);
      else
        std::fill_n(values, rows, 0.0f);
      if (!inPlaceOut)
        storeBlock(out_, machine.base, r0, rows, 0, n, worker.stage[1]);
      for (int64_t r = 0; r < rows; ++r)
        reduction_.finish(r0 + r, values[r], registers, in_.startPartition, machine.base);
    }
  }

  BlockPlan plan_;
  bool scalarEngine_;
};

class TensorScalarReduceOp final : public ReducingOp {
public:
  TensorScalarReduceOp(const Instruction &instruction, const DecodeContext &context, ReduceOp reduction)
      : ReducingOp(Operand(instruction.tiles[0], context.layout), Operand(instruction.tiles[1], context.layout),
                   RunningReduction(instruction.reduceCommand, reduction, instruction.tiles[2], context.layout), false),
        steps_({instruction.op0, instruction.reverse0,
                ScalarRef(instruction.scalars[0], instruction.tiles[1], context.layout)},
               {}) {
    nanoseconds_ = estimate(out_, 2 * kSimpleNsPerElement);
  }

protected:
  void compute(Machine &machine, Worker &worker, int64_t rows, int64_t columns, ConstRows in, MutableRows out,
               int64_t row, bool flat) const override {
    steps_.apply(rows, columns, in, out, machine.base, row, flat, worker.stage[3]);
  }

private:
  ScalarSteps steps_;
};

class ActivationOp final : public ReducingOp {
public:
  ActivationOp(const Instruction &instruction, const DecodeContext &context)
      : ReducingOp(Operand(instruction.tiles[0], context.layout), Operand(instruction.tiles[1], context.layout),
                   RunningReduction(instruction.reduceCommand, ReduceOp::Add, instruction.tiles[2], context.layout),
                   true),
        scale_(instruction.scalars[0], instruction.tiles[1], context.layout),
        bias_(instruction.scalars[1], instruction.tiles[1], context.layout), function_(instruction.function) {
    // An absent operand must not change anything: x * 1 + -0 is x, also for x = -0.
    if (instruction.scalars[0].kind == isa::ScalarOperand::Kind::None)
      scale_.value = 1.0f;
    if (instruction.scalars[1].kind == isa::ScalarOperand::Kind::None)
      bias_.value = -0.0f;
    nanoseconds_ = estimate(out_, 0.6);
    Storage in, out = Storage::F32;
    // Short rows share a call in the general form.
    if (out_.n < kReductionPartials || !in_.isContiguous() || !out_.isContiguous() || !storageOf(in_.dtype, in) ||
        !mayWriteWhileReading(out_, in_))
      return;
    isStaged_ = !storageOf(out_.dtype, out);
    fused_ = functionTable().fusedActivation[int(function_)][int(in)][int(out)];
  }

  void run(Machine &machine, Worker &worker, int begin, int end) const override {
    if (!fused_) {
      ReducingOp::run(machine, worker, begin, end);
      return;
    }
    const int add = int(ReduceOp::Add);
    float *partials = reduction_.needsValues() ? worker.partials : nullptr;
    // Other types than fp32 and bf16 are converted from a buffer.
    const int64_t chunk = isStaged_ ? kStageElements : out_.n;
    const StoreKernel store = convertTable().store[int(out_.dtype)];
    for (int64_t row = begin; row < end; ++row) {
      std::fill_n(worker.partials, kReductionPartials, 0.0f);
      const float scale = scale_.rows(machine.base, row).at(0), bias = bias_.rows(machine.base, row).at(0);
      for (int64_t c0 = 0; c0 < out_.n; c0 += chunk) {
        const int64_t columns = std::min(chunk, out_.n - c0);
        uint8_t *to = out_.row(machine.base, row) + c0 * out_.bytes;
        fused_(columns, in_.row(machine.base, row) + c0 * in_.bytes, scale, bias,
               isStaged_ ? worker.stage[0] : static_cast<void *>(to), partials);
        if (isStaged_)
          store(columns, worker.stage[0], to);
      }
      if (reduction_.isActive())
        reduction_.finish(row, partials ? reduceTable().finish[add](partials) : 0.0f, machine.scalarAccumulators,
                          in_.startPartition, machine.base);
    }
  }
  bool isValid() const { return functionTable().activation[int(function_)] != nullptr; }

protected:
  void compute(Machine &machine, Worker &worker, int64_t rows, int64_t columns, ConstRows in, MutableRows out,
               int64_t row, bool flat) const override {
    if (flat && !scale_.isVector && !bias_.isVector) {
      columns *= rows;
      rows = 1;
    }
    activationRows(function_, rows, columns, in, scale_.rows(machine.base, row), bias_.rows(machine.base, row), out);
  }

private:
  ScalarRef scale_, bias_;
  isa::ActivationFunction function_;
  ActivationKernel fused_ = nullptr;
  bool isStaged_ = false;
};

} // namespace

TileOpOrError decodeTensorTensor(const Instruction &instruction, const DecodeContext &context) {
  const isa::AluClass cls = isa::aluOpInfo(instruction.op0).cls;
  if (cls == isa::AluClass::Bitvec)
    return decodeBitvecTensorTensor(instruction, context);
  if (!elementwiseTable().hasForm[int(instruction.op0)])
    return unsupported(cat("tensor_tensor has no operator ", isa::toString(instruction.op0)));
  const auto isWord = [](const isa::TilePattern &tile) {
    return tile.dtype == isa::Dtype::I32 || tile.dtype == isa::Dtype::U32;
  };
  if (context.engine == isa::Engine::Gpsimd && isWord(instruction.tiles[0]) && isWord(instruction.tiles[1]) &&
      isWord(instruction.tiles[2]))
    return decodeIntegerTensorTensor(instruction, context);
  // A source that repeats one value per partition is a scalar operand.
  const Operand b(instruction.tiles[2], context.layout);
  if (b.isRowConstant() && b.dtype == isa::Dtype::F32 && !isUnary(instruction.op0)) {
    ScalarRef scalar;
    scalar.isVector = true;
    scalar.offset = b.offset;
    scalar.stride = b.stride;
    return TileOpOrError(std::make_unique<TensorScalarOp>(Operand(instruction.tiles[0], context.layout),
                                                          Operand(instruction.tiles[1], context.layout),
                                                          ScalarSteps({instruction.op0, false, scalar}, {})));
  }
  return TileOpOrError(std::make_unique<TensorTensorOp>(instruction, context));
}

TileOpOrError decodeTensorScalar(const Instruction &instruction, const DecodeContext &context) {
  if (isa::aluOpInfo(instruction.op0).cls == isa::AluClass::Bitvec ||
      isa::aluOpInfo(instruction.op1).cls == isa::AluClass::Bitvec)
    return decodeBitvecTensorScalar(instruction, context);
  const isa::TilePattern &source = instruction.tiles[1];
  return TileOpOrError(std::make_unique<TensorScalarOp>(
      Operand(instruction.tiles[0], context.layout), Operand(source, context.layout),
      ScalarSteps({instruction.op0, instruction.reverse0, ScalarRef(instruction.scalars[0], source, context.layout)},
                  {instruction.op1, instruction.reverse1, ScalarRef(instruction.scalars[1], source, context.layout)})));
}

TileOpOrError decodeReciprocal(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<TensorScalarOp>(Operand(instruction.tiles[0], context.layout),
                                                        Operand(instruction.tiles[1], context.layout),
                                                        ScalarSteps({AluOp::Reciprocal, false, {}}, {})));
}

TileOpOrError decodeScalarTensorTensor(const Instruction &instruction, const DecodeContext &context) {
  return TileOpOrError(std::make_unique<ScalarTensorTensorOp>(instruction, context));
}

TileOpOrError decodeTensorScalarReduce(const Instruction &instruction, const DecodeContext &context) {
  ReduceOp reduction;
  if (!reduceOpOf(instruction.op1, reduction))
    return unsupported(cat("tensor_scalar_reduce cannot reduce with ", isa::toString(instruction.op1)));
  return TileOpOrError(std::make_unique<TensorScalarReduceOp>(instruction, context, reduction));
}

TileOpOrError decodeActivation(const Instruction &instruction, const DecodeContext &context) {
  auto op = std::make_unique<ActivationOp>(instruction, context);
  if (!op->isValid())
    return unsupported(cat("activation function ", isa::toString(instruction.function), " has no implementation"));
  return TileOpOrError(std::move(op));
}

} // namespace neuroncore::emulator
