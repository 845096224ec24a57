// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The numbered constraints of lib/Isa/instructions.toml on one instruction. Each method checks the constraints of one
// subject; the opcode's own are dispatched at the end.

#include "neuron/Isa/Verify.h"

#include <algorithm>

#include "Encoding.h"
#include "neuron/Isa/InstructionTable.h"
#include "neuron/Support/Text.h"

namespace neuroncore::isa {

using target::MachineModel;

namespace {

std::string_view statementOf(const InstructionInfo &info, std::string_view number) {
  for (std::span<const LimitInfo> limits : {info.limits, generalLimits()})
    for (const LimitInfo &limit : limits)
      if (limit.number == number)
        return limit.statement;
  return "constraint without a statement";
}

bool isBitvec(AluOp op) { return aluOpInfo(op).cls == AluClass::Bitvec; }
bool isCompare(AluOp op) { return aluOpInfo(op).cls == AluClass::Compare; }
bool isArithmeticOrCompare(AluOp op) { return aluOpInfo(op).cls == AluClass::Arithmetic || isCompare(op); }
bool needsScalar(AluOp op) { return op != AluOp::Bypass && !aluOpInfo(op).unary; }

bool isMatmulDtype(Dtype dtype) { return isFloatDtype(dtype) && dtype != Dtype::F64; }

class LimitVerifier {
public:
  LimitVerifier(const MachineModel &model, Engine engine, const Instruction &instruction)
      : model_(model), engine_(engine), in_(instruction), info_(instructionInfo(instruction.opcode)) {}

  Status run() {
    for (int i = 0; i < info_.numTiles; ++i)
      if (in_.tiles[i].present() && in_.tiles[i].space != MemorySpace::Hbm)
        operand(i);
    for (const ScalarOperand &scalar : in_.scalars)
      if (scalar.kind == ScalarOperand::Kind::Vector)
        vectorOperand(scalar);
    byOpcode();
    return std::move(status_);
  }

private:
  /// Keeps the first violation.
  template <typename... Detail> void violation(std::string_view number, const Detail &...detail) {
    if (status_)
      status_ = Error(ErrorKind::InvalidInput, cat(number, ": ", statementOf(info_, number), ", but ", detail...));
  }
  template <typename... Detail> void require(bool holds, std::string_view number, const Detail &...detail) {
    if (!holds)
      violation(number, detail...);
  }

  const TilePattern &tile(int i) const { return in_.tiles[i]; }
  int64_t n(int i) const { return in_.tiles[i].elementsPerPartition(); }
  bool inPsum(int i) const { return in_.tiles[i].space == MemorySpace::Psum; }
  std::string_view name(int i) const { return info_.tiles[i].name; }

  // -- operands

  int64_t capacity(MemorySpace space) const {
    return space == MemorySpace::Psum ? model_.memory().psumBytesPerPartition : model_.memory().sbufBytesPerPartition;
  }

  /// First and last byte of the tile in a partition.
  static std::pair<int64_t, int64_t> byteRange(const TilePattern &tile) {
    int64_t low = 0, high = 0;
    for (int k = 0; k < kMaxFreeDims; ++k) {
      int64_t reach = int64_t(tile.step[k]) * (tile.count[k] - 1);
      (reach < 0 ? low : high) += reach;
    }
    int64_t bytes = dtypeBytes(tile.dtype);
    return {tile.byteOffset + low * bytes, tile.byteOffset + (high + 1) * bytes - 1};
  }

  void operand(int i) {
    const TilePattern &t = tile(i);
    bool dma = info_.group == Group::Dma;
    int end = t.startPartition + t.numPartitions;
    bool legalStart =
        dma ? end <= model_.memory().partitions : model_.isLegalStartPartition(t.startPartition, t.numPartitions);
    require(t.numPartitions > 0 && legalStart, "operand_c1", name(i), " has partitions ", int(t.startPartition), " to ",
            end - 1);
    auto [first, last] = byteRange(t);
    require(first >= 0 && last < capacity(t.space), "operand_c2", name(i), " takes bytes ", first, " to ", last, " of ",
            capacity(t.space));
    int64_t most =
        inPsum(i) ? model_.memory().maxElementsPerPartitionPsum : model_.memory().maxElementsPerPartitionSbuf;
    require(dma || n(i) <= most, "operand_c3", name(i), " has ", n(i));
    int bytes = dtypeBytes(t.dtype);
    require(t.byteOffset % unsigned(bytes) == 0, "operand_c4", name(i), " starts at byte ", t.byteOffset,
            " with elements of ", bytes);
    if (info_.tiles[i].writes())
      for (int k = 0; k < kMaxFreeDims; ++k)
        require(t.count[k] == 1 || t.step[k] != 0, "operand_c5", name(i), " repeats an element ", t.count[k], " times");
    require(bytes < 8 || dma || in_.opcode == Opcode::GpsimdCall, "operand_c6", name(i), " is ", toString(t.dtype));
    if (engine_ == Engine::Gpsimd && info_.group == Group::Compute && inPsum(i))
      violation(in_.opcode == Opcode::TensorCopy     ? "tensor_copy_c1"
                : in_.opcode == Opcode::Memset       ? "memset_c1"
                : in_.opcode == Opcode::TensorTensor ? "tensor_tensor_c2"
                                                     : "operand_c7",
                name(i), " is in psum");
  }

  void vectorOperand(const ScalarOperand &scalar) {
    require(int64_t(scalar.byteOffset) + 4 <= capacity(scalar.space), "operand_c2", "a vector operand takes bytes ",
            scalar.byteOffset, " to ", int64_t(scalar.byteOffset) + 3, " of ", capacity(scalar.space));
    require(scalar.byteOffset % 4 == 0, "operand_c4", "a vector operand starts at byte ", scalar.byteOffset);
    require(engine_ != Engine::Gpsimd || scalar.space == MemorySpace::Sbuf, "operand_c7",
            "a vector operand is in psum");
  }

  void samePartitions(int a, int b) {
    require(tile(a).numPartitions == tile(b).numPartitions, "operand_c8", name(a), " has ", int(tile(a).numPartitions),
            " partitions and ", name(b), " has ", int(tile(b).numPartitions));
  }

  void sameShape(int a, int b) {
    samePartitions(a, b);
    require(n(a) == n(b), "operand_c8", name(a), " has ", n(a), " elements per partition and ", name(b), " has ", n(b));
  }

  void elements(int i, int64_t count, std::string_view number) {
    require(n(i) == count, number, name(i), " has ", n(i), " elements per partition");
  }

  void oneF32(int i, std::string_view number) {
    samePartitions(i, 0);
    require(n(i) == 1 && tile(i).dtype == Dtype::F32, number, name(i), " has ", n(i), " of ", toString(tile(i).dtype));
  }

  void notBothInPsum(int a, int b, std::string_view number) { require(!inPsum(a) || !inPsum(b), number, "both are"); }

  void oneDtype(int a, int b, std::string_view number) {
    require(tile(a).dtype == tile(b).dtype, number, name(a), " is ", toString(tile(a).dtype), " and ", name(b), " is ",
            toString(tile(b).dtype));
  }

  // -- operators

  void bitvecDtypes(int numTiles, std::string_view number) {
    for (int i = 0; i < numTiles; ++i)
      require(isIntegerDtype(tile(i).dtype) && tile(i).dtype == tile(0).dtype, number, name(i), " is ",
              toString(tile(i).dtype));
  }

  void binaryOperator(AluOp op) { require(!aluOpInfo(op).unary, "operator_c1", "the operator is ", toString(op)); }

  void scalarPresent(int i, AluOp op) {
    require(!needsScalar(op) || in_.scalars[i].kind != ScalarOperand::Kind::None, "operator_c3", toString(op),
            " has no ", info_.scalars[i]);
  }

  void required(int i) {
    require(in_.scalars[i].kind != ScalarOperand::Kind::None, "operator_c3", info_.scalars[i], " is absent");
  }

  void constant(int i, std::string_view number) {
    require(in_.scalars[i].kind == ScalarOperand::Kind::Constant, number,
            in_.scalars[i].kind == ScalarOperand::Kind::None ? "it is absent" : "it is a vector");
  }

  void fits32Bits(int count, std::string_view number) {
    for (int i = 0; i < count; ++i)
      require(in_.immediates[i] == int32_t(in_.immediates[i]), number, "immediate ", i, " is ", in_.immediates[i]);
  }

  // -- tensor engine

  void loadStationary() {
    require(tile(0).numPartitions <= model_.tensorEngine().rows, "load_stationary_c1", "K is ",
            int(tile(0).numPartitions));
    require(n(0) <= model_.tensorEngine().cols, "load_stationary_c2", "M is ", n(0));
    require(isMatmulDtype(tile(0).dtype), "load_stationary_c3", "it is ", toString(tile(0).dtype));
  }

  void matmul() {
    const TilePattern &dst = tile(0), &moving = tile(1);
    require(moving.numPartitions <= model_.tensorEngine().rows, "matmul_c1", "K is ", int(moving.numPartitions));
    require(n(1) <= model_.tensorEngine().maxMovingFree, "matmul_c3", "N is ", n(1), " and the limit ",
            model_.tensorEngine().maxMovingFree);
    auto [first, last] = byteRange(dst);
    int64_t bank = model_.memory().psumBankBytes;
    require(first < 0 || last / bank - first / bank < model_.tensorEngine().maxPsumBanksPerMatmul, "matmul_c4",
            "it takes banks ", first / bank, " to ", last / bank);
    require(in_.isTranspose || dst.dtype == Dtype::F32, "matmul_c4", "dst is ", toString(dst.dtype));
    require(isMatmulDtype(moving.dtype), "matmul_c8", "it is ", toString(moving.dtype));
    if (in_.isTranspose) {
      require(!in_.accumulate, "matmul_c7", "it accumulates");
      require(dtypeBytes(dst.dtype) == 2 || dtypeBytes(dst.dtype) == 4, "matmul_c7", "dst is ", toString(dst.dtype));
      require(n(1) == moving.numPartitions && n(0) == moving.numPartitions, "matmul_c9", "dst has ", n(0), ", N is ",
              n(1), " and K is ", int(moving.numPartitions));
    } else {
      require(n(0) == n(1), "matmul_c9", "dst has ", n(0), " and N is ", n(1));
    }
  }

  // -- element-wise

  void tensorTensor() {
    sameShape(0, 1);
    sameShape(0, 2);
    notBothInPsum(1, 2, "tensor_tensor_c1");
    binaryOperator(in_.op0);
    if (isBitvec(in_.op0))
      bitvecDtypes(3, "tensor_tensor_c3");
    require(in_.op0 != AluOp::Power || engine_ == Engine::Gpsimd, "tensor_tensor_c4", "this is the ", toString(engine_),
            " stream");
  }

  void tensorScalar() {
    sameShape(0, 1);
    AluOp op0 = in_.op0, op1 = in_.op1;
    scalarPresent(0, op0);
    scalarPresent(1, op1);
    bool bitvec = isBitvec(op0) || isBitvec(op1);
    if (bitvec) {
      require((isBitvec(op0) || op0 == AluOp::Bypass) && (isBitvec(op1) || op1 == AluOp::Bypass), "tensor_scalar_c1",
              "they are ", toString(op0), " and ", toString(op1));
      require(engine_ == Engine::Vector, "tensor_scalar_c4", "this is the ", toString(engine_), " stream");
      bitvecDtypes(2, "operator_c2");
    }
    if (engine_ != Engine::Scalar)
      return;
    bool fused = op0 == AluOp::Multiply && op1 == AluOp::Add;
    bool single = (op0 == AluOp::Multiply || op0 == AluOp::Add) && op1 == AluOp::Bypass;
    require(fused || single, "tensor_scalar_c3", "they are ", toString(op0), " and ", toString(op1));
  }

  void scalarTensorTensor() {
    sameShape(0, 1);
    sameShape(0, 2);
    notBothInPsum(1, 2, "scalar_tensor_tensor_c1");
    for (AluOp op : {in_.op0, in_.op1})
      require(isArithmeticOrCompare(op), "scalar_tensor_tensor_c2", "one is ", toString(op));
    scalarPresent(0, in_.op0);
  }

  void tensorScalarReduce() {
    sameShape(0, 1);
    oneF32(2, "tensor_scalar_reduce_c2");
    AluOp op = in_.op1;
    require(op == AluOp::Add || op == AluOp::Multiply || op == AluOp::Maximum || op == AluOp::Minimum,
            "tensor_scalar_reduce_c1", "it is ", toString(op));
    require(!isBitvec(in_.op0), "tensor_scalar_reduce_c3", "it is ", toString(in_.op0));
    scalarPresent(0, in_.op0);
  }

  void scan() {
    sameShape(0, 1);
    sameShape(0, 2);
    notBothInPsum(1, 2, "tensor_tensor_scan_c1");
    for (AluOp op : {in_.op0, in_.op1})
      require(isArithmeticOrCompare(op), "tensor_tensor_scan_c2", "one is ", toString(op));
    required(0);
  }

  void rangeSelect() {
    sameShape(0, 1);
    for (AluOp op : {in_.op0, in_.op1})
      require(isCompare(op), "range_select_c1", "one is ", toString(op));
    require(in_.immediate >= 0 && in_.immediate + n(0) < (1 << 24), "range_select_c2", "start is ", in_.immediate,
            " and N is ", n(0));
    required(0);
    required(1);
  }

  void predicatedCopy() {
    sameShape(0, 1);
    sameShape(0, 2);
    Dtype predicate = tile(2).dtype;
    require(isIntegerDtype(predicate) && dtypeBytes(predicate) <= 4, "tensor_copy_predicated_c1", "it is ",
            toString(predicate));
    oneDtype(0, 1, "tensor_copy_predicated_c2");
    notBothInPsum(1, 2, "tensor_copy_predicated_c3");
  }

  void activation() {
    sameShape(0, 1);
    if (tile(2).present())
      oneF32(2, "activation_c1");
    require(model_.generation() >= 3 || in_.scalars[1].kind != ScalarOperand::Kind::Constant, "activation_c2",
            "the target is ", model_.target());
  }

  // -- reductions and search

  void reduce() {
    samePartitions(0, 1);
    static constexpr AluOp kAllowed[] = {AluOp::Add,        AluOp::Multiply,  AluOp::Maximum,    AluOp::Minimum,
                                         AluOp::LogicalAnd, AluOp::LogicalOr, AluOp::LogicalXor, AluOp::BitwiseAnd,
                                         AluOp::BitwiseOr,  AluOp::BitwiseXor};
    require(std::find(std::begin(kAllowed), std::end(kAllowed), in_.op0) != std::end(kAllowed), "tensor_reduce_c1",
            "it is ", toString(in_.op0));
    if (isBitvec(in_.op0))
      bitvecDtypes(2, "operator_c2");
    int64_t kept = 1;
    for (int k = 0; k < kMaxFreeDims - std::min<int>(in_.axes, kMaxFreeDims); ++k)
      kept *= tile(1).count[k];
    require(in_.axes >= 1 && in_.axes <= kMaxFreeDims && n(0) == kept, "tensor_reduce_c2", "dst has ", n(0),
            " and the dimensions kept with ", int(in_.axes), " axes have ", kept);
  }

  void transpose() {
    sameShape(0, 1);
    require(tile(1).numPartitions % 32 == 0 && n(1) % 32 == 0, "transpose_c1", "they are ", int(tile(1).numPartitions),
            " and ", n(1));
    int bytes = dtypeBytes(tile(0).dtype);
    require(tile(0).dtype == tile(1).dtype && (bytes == 2 || bytes == 4), "transpose_c2", "dst is ",
            toString(tile(0).dtype), " and src is ", toString(tile(1).dtype));
  }

  void streamShuffle() {
    sameShape(0, 1);
    oneDtype(0, 1, "stream_shuffle_c1");
    for (int i = 0; i < 32; ++i) {
      int entry = int(uint64_t(in_.immediates[i / 8]) >> (8 * (i % 8)) & 255);
      require(entry < 32 || entry == 255, "stream_shuffle_c2", "entry ", i, " is ", entry);
    }
    require(in_.immediates[4] == 0 && in_.immediates[5] == 0, "stream_shuffle_c2", "they are not");
  }

  void findIndex() {
    samePartitions(0, 1);
    samePartitions(0, 2);
    require(n(1) >= 8 && n(1) <= 16384, "find_index8_c1", "N is ", n(1));
    Dtype dtype = tile(0).dtype;
    require((dtype == Dtype::U16 || dtype == Dtype::U32) && n(0) == 8, "find_index8_c2", "it is ", toString(dtype),
            " with ", n(0));
    elements(2, 8, "find_index8_c3");
  }

  void batchNormStatistics() {
    samePartitions(0, 1);
    require(n(1) <= kMaxStatisticsElements, "bn_stats_c1", "N is ", n(1));
    require(n(0) == kStatisticsResults && tile(0).dtype == Dtype::F32, "bn_stats_c2", "it has ", n(0), " of ",
            toString(tile(0).dtype));
  }

  void batchNormAggregate() {
    samePartitions(0, 1);
    require(n(1) % 3 == 0, "bn_aggr_c1", "N is ", n(1));
    require(n(0) == 2 && tile(0).dtype == Dtype::F32, "bn_aggr_c2", "it has ", n(0), " of ", toString(tile(0).dtype));
  }

  // -- GpSimd

  void affineSelect() {
    sameShape(0, 1);
    require(isCompare(in_.op0), "affine_select_c1", "it is ", toString(in_.op0));
    fits32Bits(6, "affine_select_c2");
    constant(0, "affine_select_c3");
  }

  void gpsimdCall() {
    if (!routineFunctionInfo(in_.routine, in_.routineFunction))
      return violation("gpsimd_call_c1", "the routine is ", toString(in_.routine), " and the function ",
                       int(in_.routineFunction));
    const RoutineInfo &routine = routineInfo(in_.routine);
    for (int i = 0; i < info_.numTiles; ++i) {
      bool present = tile(i).present();
      require(!present || (routine.allowedTiles >> i & 1), "gpsimd_call_c2", routine.name, " has no ", name(i));
      require(present || !(routine.requiredTiles >> i & 1), "gpsimd_call_c2", routine.name, " needs ", name(i));
    }
    require(in_.immediates[4] == 0 && in_.immediates[5] == 0, "gpsimd_call_c3", "they are not");
  }

  // -- DMA

  static bool isDynamic(const HbmPattern &pattern) {
    bool dynamic = false;
    for (const HbmPattern::Term &term : pattern.terms)
      dynamic |= term.reg != kZeroRegister;
    for (int k = 0; k < kMaxHbmDims; ++k)
      dynamic |= pattern.countRegister[k] != kZeroRegister || pattern.stepRegister[k] != kZeroRegister;
    return dynamic;
  }

  void trigger(std::string_view engines, std::string_view mode, std::string_view queue) {
    switch (in_.dgeMode) {
    case DgeMode::Unknown:
      violation(mode, "dge_mode is unknown");
      break;
    case DgeMode::Static:
      for (const HbmPattern &pattern : in_.hbm)
        require(!isDynamic(pattern), mode, "a static transfer has registers");
      break;
    case DgeMode::Hardware:
      require(engine_ == Engine::Sync || engine_ == Engine::Scalar, engines, "hwdge is triggered by ",
              toString(engine_));
      require(model_.topology().hwDgeInstances > 0, mode, model_.target(), " does not");
      break;
    case DgeMode::Software:
      require(engine_ == Engine::Gpsimd, engines, "swdge is triggered by ", toString(engine_));
      break;
    }
    require(in_.queue < model_.topology().dmaQueuesPerEngine, queue, "it is ", int(in_.queue));
  }

  /// Elements of one side, saturating far above what a variable can hold.
  int64_t sideElements(int i) const {
    if (tile(i).space != MemorySpace::Hbm)
      return tile(i).numPartitions * n(i);
    int64_t product = 1;
    for (uint32_t count : in_.hbm[i].count)
      if (__builtin_mul_overflow(product, int64_t(count), &product))
        return INT64_MAX;
    return product;
  }

  Dtype sideDtype(int i) const { return tile(i).space == MemorySpace::Hbm ? in_.hbm[i].dtype : tile(i).dtype; }

  void dmaCopy() {
    bool dstInHbm = tile(0).space == MemorySpace::Hbm, srcInHbm = tile(1).space == MemorySpace::Hbm;
    require(sideElements(0) == sideElements(1) && sideElements(0) != INT64_MAX, "dma_copy_c1", "dst has ",
            sideElements(0), " and src has ", sideElements(1));
    trigger("dma_copy_c2", "dma_copy_c5", "dma_copy_c6");
    require(dstInHbm || srcInHbm, "dma_copy_c7", "both are in sbuf");
    require(sideDtype(0) == sideDtype(1) || (dtypeBytes(sideDtype(0)) < 8 && dtypeBytes(sideDtype(1)) < 8),
            "dma_copy_c8", "dst is ", toString(sideDtype(0)), " and src is ", toString(sideDtype(1)));
    if (dstInHbm)
      for (int k = 0; k < kMaxHbmDims; ++k)
        require(in_.hbm[0].count[k] == 1 || in_.hbm[0].step[k] != 0, "operand_c5", "dst repeats an element ",
                in_.hbm[0].count[k], " times");
    if (!tile(2).present())
      return;
    if (dstInHbm == srcInHbm)
      return violation("dma_copy_c3", dstInHbm ? "both sides are in hbm" : "both sides are in sbuf");
    const TilePattern &index = tile(2), &sbuf = tile(dstInHbm ? 1 : 0);
    require(index.dtype == Dtype::I32 || index.dtype == Dtype::U32 || index.dtype == Dtype::I64, "dma_copy_c3",
            "index is ", toString(index.dtype));
    require(n(2) == 1 && index.startPartition == sbuf.startPartition && index.numPartitions == sbuf.numPartitions,
            "dma_copy_c3", "index has ", n(2), " elements in partitions ", int(index.startPartition), " to ",
            index.startPartition + index.numPartitions - 1);
    uint32_t outermost = in_.hbm[dstInHbm ? 0 : 1].count[0];
    require(outermost == sbuf.numPartitions, "dma_copy_c3", "the outermost count is ", outermost);
    require(in_.dgeMode == DgeMode::Software, "dma_copy_c3", "dge_mode is not software");
  }

  void dmaTranspose() {
    require(model_.generation() >= 3, "dma_transpose_c1", "the target is ", model_.target());
    int bytes = dtypeBytes(sideDtype(0));
    require(sideDtype(0) == sideDtype(1) && (bytes == 2 || bytes == 4), "dma_transpose_c2", "dst is ",
            toString(sideDtype(0)), " and src is ", toString(sideDtype(1)));
    trigger("dma_transpose_c3", "dma_transpose_c3", "dma_transpose_c3");
    int64_t rowElements = tile(0).numPartitions;
    if (tile(1).space == MemorySpace::Sbuf) {
      require(n(1) == rowElements && tile(1).numPartitions == n(0), "dma_transpose_c4", "src has ",
              int(tile(1).numPartitions), " rows of ", n(1), " and dst is ", rowElements, " by ", n(0));
      return;
    }
    // The rows of src are its innermost dimensions.
    int64_t product = 1;
    for (int k = kMaxHbmDims - 1; k >= 0 && product < rowElements; --k)
      product *= in_.hbm[1].count[k];
    require(product == rowElements && sideElements(1) == rowElements * n(0), "dma_transpose_c4", "src has ",
            sideElements(1), " elements in rows of ", product, " and dst is ", rowElements, " by ", n(0));
  }

  // -- sequencer

  void oneRegisterElement(std::string_view number) {
    Dtype dtype = tile(0).space == MemorySpace::Hbm ? in_.hbm[encoding::hbmIndex(in_.opcode, 0)].dtype : tile(0).dtype;
    int64_t count = tile(0).numPartitions * n(0);
    if (tile(0).space == MemorySpace::Hbm) {
      const HbmPattern &pattern = in_.hbm[encoding::hbmIndex(in_.opcode, 0)];
      count = *std::max_element(pattern.count.begin(), pattern.count.end());
      for (int k = 0; k < kMaxHbmDims; ++k)
        require(pattern.countRegister[k] == kZeroRegister, number, "it has a dynamic count");
    }
    require(count == 1 && (dtype == Dtype::I32 || dtype == Dtype::U32), number, "it is ", count, " of ",
            toString(dtype));
  }

  void registerAlu() {
    AluOp op = in_.op0;
    require(op == AluOp::Add || op == AluOp::Subtract || op == AluOp::Multiply || op == AluOp::Maximum ||
                op == AluOp::Minimum || isBitvec(op),
            "register_alu_c1", "it is ", toString(op));
  }

  void rangeClear() {
    int64_t end = int64_t(in_.immediate) + in_.target;
    require(in_.immediate >= 0 && end <= model_.topology().semaphoresPerCore, "semaphore_range_clear_c1", "it clears ",
            in_.immediate, " to ", end - 1);
  }

  void byOpcode() {
    switch (in_.opcode) {
    case Opcode::LoadStationary:
      return loadStationary();
    case Opcode::Matmul:
      return matmul();
    case Opcode::TensorCopy:
      sameShape(0, 1);
      return require(engine_ != Engine::Scalar || model_.generation() >= 3, "tensor_copy_c2", "the target is ",
                     model_.target());
    case Opcode::TensorCopyPredicated:
      return predicatedCopy();
    case Opcode::Memset:
      return constant(0, "memset_c2");
    case Opcode::TensorTensor:
      return tensorTensor();
    case Opcode::TensorScalar:
      return tensorScalar();
    case Opcode::ScalarTensorTensor:
      return scalarTensorTensor();
    case Opcode::TensorScalarReduce:
      return tensorScalarReduce();
    case Opcode::TensorTensorScan:
      return scan();
    case Opcode::Reciprocal:
      return sameShape(0, 1);
    case Opcode::RangeSelect:
      return rangeSelect();
    case Opcode::Activation:
      return activation();
    case Opcode::TensorReduce:
      return reduce();
    case Opcode::BnStats:
      return batchNormStatistics();
    case Opcode::BnAggr:
      return batchNormAggregate();
    case Opcode::Transpose:
      return transpose();
    case Opcode::StreamShuffle:
      return streamShuffle();
    case Opcode::Max8:
      samePartitions(0, 1);
      require(n(1) >= 8 && n(1) <= 16384, "max8_c1", "N is ", n(1));
      return elements(0, 8, "max8_c2");
    case Opcode::FindIndex8:
      return findIndex();
    case Opcode::Iota:
      return fits32Bits(6, "iota_c1");
    case Opcode::AffineSelect:
      return affineSelect();
    case Opcode::GpsimdCall:
      return gpsimdCall();
    case Opcode::DmaCopy:
      return dmaCopy();
    case Opcode::DmaTranspose:
      return dmaTranspose();
    case Opcode::RegisterAlu:
      return registerAlu();
    case Opcode::Branch:
      return require(isCompare(in_.op0) || in_.op0 == AluOp::Bypass, "branch_c1", "it is ", toString(in_.op0));
    case Opcode::RegisterLoad:
      return oneRegisterElement("register_load_c1");
    case Opcode::RegisterStore:
      return oneRegisterElement("register_store_c1");
    case Opcode::SemaphoreRangeClear:
      return rangeClear();
    case Opcode::Nop:
    case Opcode::RegisterMove:
    case Opcode::SemaphoreUpdate:
    case Opcode::Call:
    case Opcode::Return:
      return;
    }
  }

  const MachineModel &model_;
  Engine engine_;
  const Instruction &in_;
  const InstructionInfo &info_;
  Status status_;
};

} // namespace

Status verifyInstruction(const MachineModel &model, Engine engine, const Instruction &instruction) {
  if (Status status = verifyForm(engine, instruction); !status)
    return status;
  return LimitVerifier(model, engine, instruction).run();
}

} // namespace neuroncore::isa
