// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every numbered constraint has an instruction that breaks it, and only it. Cases are written in the text form.

#include "neuron/Isa/Verify.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "neuron/Isa/Assembly.h"
#include "neuron/Isa/InstructionTable.h"

using namespace neuroncore;
using namespace neuroncore::isa;
using testing::HasSubstr;

namespace {

struct Case {
  const char *limit;
  const char *engine;
  const char *text; // the last line is the instruction that breaks the limit; $A.. stand for operands
  const char *target = "trn2";
};

/// Short forms of operands: S and P are [128, 64] f32 in SBUF and PSUM, S1 one column, I and B integer and bf16 tiles.
std::string expand(std::string text) {
  const std::pair<std::string_view, std::string_view> forms[] = {
      {"$S1", "sbuf[0:128, 0x400 + 1*1] f32"},
      {"$S6", "sbuf[0:128, 0x400 + 1*6] f32"},
      {"$S8", "sbuf[0:128, 0x400 + 1*8] f32"},
      {"$U8", "sbuf[0:128, 0x400 + 1*8] u32"},
      {"$S", "sbuf[0:128, 0x0 + 1*64] f32"},
      {"$P", "psum[0:128, 0x0 + 1*64] f32"},
      {"$I", "sbuf[0:128, 0x0 + 1*64] i32"},
      {"$B", "sbuf[0:128, 0x0 + 1*64] bf16"},
      {"$H", "hbm[v0, 256*128 + 0*1 + 0*1 + 0*1 + 4*64] f32"},
  };
  for (const auto &[form, expansion] : forms)
    for (size_t at; (at = text.find(form)) != text.npos;)
      text.replace(at, form.size(), expansion);
  return text;
}

std::string check(const Case &item, std::string_view text) {
  Expected<Program> program =
      parseProgram("stream " + std::string(item.engine) + " {\n" + expand(std::string(text)) + "\n}\n");
  if (!program)
    return program.error().message();
  Status status = verifyProgram(*target::MachineModel::builtin(item.target), *program);
  return status ? "no error" : status.error().message();
}

const Case kViolations[] = {
    {"operand_c1", "vector", "memset dst=sbuf[32:128, 0x0] f32, value=0.0"},
    {"operand_c1", "vector", "memset dst=sbuf[16:32, 0x0] f32, value=0.0"},
    {"operand_c1", "vector", "memset dst=sbuf[32:96, 0x0] f32, value=0.0"},
    {"operand_c1", "vector", "memset dst=sbuf[0:0, 0x0] f32, value=0.0"},
    {"operand_c1", "sync", "dma_copy dst=sbuf[100:200, 0x0] f32, src=hbm[v0, 4*100] f32, dge_mode=static"},
    {"operand_c2", "vector", "memset dst=sbuf[0:128, 0x0 + 4096*15 + 1*4096] f32, value=0.0"},
    {"operand_c2", "vector", "memset dst=psum[0:128, 0x0 + 1*4097] f32, value=0.0"},
    {"operand_c2", "vector", "memset dst=sbuf[0:128, 0x0 + -1*2] f32, value=0.0"},
    {"operand_c2", "vector", "tensor_scalar dst=$S, src=$S, op0=add, scalar0=sbuf@0x38000"},
    {"operand_c3", "vector", "memset dst=sbuf[0:128, 0x0 + 16385*4 + 1*16385] u8, value=0x0"},
    {"operand_c3", "vector", "memset dst=psum[0:128, 0x0 + 1*4097] u8, value=0x0"},
    {"operand_c4", "vector", "memset dst=sbuf[0:128, 0x2] f32, value=0.0"},
    {"operand_c4", "vector", "tensor_scalar dst=$S, src=$S, op0=add, scalar0=sbuf@0x2"},
    {"operand_c5", "vector", "memset dst=sbuf[0:128, 0x0 + 0*2] f32, value=0.0"},
    {"operand_c5", "sync", "dma_copy dst=hbm[v0, 0*128 + 4*64] f32, src=$S, dge_mode=static"},
    {"operand_c6", "vector", "tensor_copy dst=sbuf[0:1, 0x0] i64, src=sbuf[0:1, 0x8] i64"},
    {"operand_c7", "gpsimd", "tensor_scalar dst=$S, src=$P, op0=add, scalar0=1.0"},
    {"operand_c7", "gpsimd", "tensor_scalar dst=$S, src=$S, op0=add, scalar0=psum@0x0"},
    {"operand_c8", "vector", "tensor_copy dst=$S, src=$S1"},
    {"operand_c8", "vector", "tensor_copy dst=$S, src=sbuf[0:64, 0x0 + 1*64] f32"},
    {"operator_c1", "vector", "tensor_tensor dst=$S, src0=$S, src1=$S, op0=abs"},
    {"operator_c2", "vector", "tensor_scalar dst=$S, src=$S, op0=bitwise_and, scalar0=0x1"},
    {"operator_c2", "vector", "tensor_reduce dst=$S1, src=$S, op0=bitwise_or, axes=1"},
    {"operator_c3", "vector", "tensor_scalar dst=$S, src=$S, op0=add"},
    {"operator_c3", "vector", "tensor_scalar dst=$S, src=$S, op0=add, scalar0=1.0, op1=multiply"},
    {"operator_c3", "vector", "tensor_tensor_scan dst=$S, src0=$S, src1=$S, op0=add, op1=add"},
    {"operator_c3", "vector", "range_select dst=$S, src=$S, bound0=1.0, op0=less, op1=less"},

    {"load_stationary_c2", "tensor", "load_stationary src=sbuf[0:128, 0x0 + 1*129] bf16"},
    {"load_stationary_c3", "tensor", "load_stationary src=$I"},
    {"matmul_c1", "tensor", "matmul dst=psum[0:64, 0x0 + 1*64] f32, moving=$B"},
    {"matmul_c1", "tensor",
     "load_stationary src=sbuf[0:64, 0x0 + 1*64] bf16\nmatmul dst=psum[0:64, 0x0 + 1*64] f32, moving=$B"},
    {"matmul_c2", "tensor", "load_stationary src=$B\nmatmul dst=psum[0:32, 0x0 + 1*64] f32, moving=$B"},
    {"matmul_c3", "tensor",
     "load_stationary src=$B\nmatmul dst=psum[0:64, 0x0 + 1*513] f32, moving=sbuf[0:128, 0x0 + 1*513] bf16"},
    {"matmul_c4", "tensor",
     "load_stationary src=$B\nmatmul dst=psum[0:64, 0x400 + 1*512] f32, moving=sbuf[0:128, 0x0 + 1*512] bf16"},
    {"matmul_c4", "tensor", "load_stationary src=$B\nmatmul dst=psum[0:64, 0x0 + 1*64] bf16, moving=$B"},
    {"matmul_c5", "tensor", "load_stationary src=$B\nmatmul dst=psum[0:64, 0x0 + 1*64] f32, moving=$S"},
    {"matmul_c7", "tensor",
     "load_stationary src=sbuf[0:64, 0x0 + 1*32] bf16\nmatmul dst=psum[0:32, 0x0 + 1*64] f32, moving=sbuf[0:64, 0x0 + "
     "1*64] bf16, is_transpose"},
    {"matmul_c7", "tensor",
     "load_stationary src=sbuf[0:64, 0x0 + 1*32] f32\nmatmul dst=psum[0:32, 0x0 + 1*64] f32, moving=sbuf[0:64, 0x0 + "
     "1*64] f32, is_transpose, accumulate"},
    {"matmul_c8", "tensor", "load_stationary src=$B\nmatmul dst=psum[0:64, 0x0 + 1*64] f32, moving=$I"},
    {"matmul_c9", "tensor", "load_stationary src=$B\nmatmul dst=psum[0:64, 0x0 + 1*32] f32, moving=$B"},
    {"matmul_c9", "tensor", "load_stationary src=$B\nmatmul dst=psum[0:64, 0x0 + 1*64] bf16, moving=$B, is_transpose"},

    {"tensor_copy_c1", "gpsimd", "tensor_copy dst=$S, src=$P"},
    {"tensor_copy_c2", "scalar", "tensor_copy dst=$S, src=$S", "trn1"},
    {"tensor_copy_predicated_c1", "vector", "tensor_copy_predicated dst=$S, src=$S, predicate=$S"},
    {"tensor_copy_predicated_c2", "vector", "tensor_copy_predicated dst=$S, src=$B, predicate=$I"},
    {"tensor_copy_predicated_c3", "vector",
     "tensor_copy_predicated dst=$S, src=$P, predicate=psum[0:128, 0x0 + 1*64] u8"},
    {"memset_c1", "gpsimd", "memset dst=$P, value=0.0"},
    {"memset_c2", "vector", "memset dst=$S, value=sbuf@0x0"},
    {"memset_c2", "vector", "memset dst=$S"},
    {"tensor_tensor_c1", "vector", "tensor_tensor dst=$S, src0=$P, src1=$P, op0=add"},
    {"tensor_tensor_c2", "gpsimd", "tensor_tensor dst=$S, src0=$P, src1=$S, op0=add"},
    {"tensor_tensor_c3", "vector", "tensor_tensor dst=$I, src0=$I, src1=$S, op0=bitwise_and"},
    {"tensor_tensor_c4", "vector", "tensor_tensor dst=$S, src0=$S, src1=$S, op0=power"},
    {"tensor_scalar_c1", "vector", "tensor_scalar dst=$I, src=$I, op0=bitwise_and, scalar0=0x1, op1=add, scalar1=0x1"},
    {"tensor_scalar_c3", "scalar", "tensor_scalar dst=$S, src=$S, op0=subtract, scalar0=1.0"},
    {"tensor_scalar_c3", "scalar", "tensor_scalar dst=$S, src=$S, op0=add, scalar0=1.0, op1=multiply, scalar1=1.0"},
    {"tensor_scalar_c4", "gpsimd", "tensor_scalar dst=$I, src=$I, op0=bitwise_and, scalar0=0x1"},
    {"scalar_tensor_tensor_c1", "vector",
     "scalar_tensor_tensor dst=$S, src0=$P, src1=$P, op0=add, scalar0=1.0, op1=add"},
    {"scalar_tensor_tensor_c2", "vector",
     "scalar_tensor_tensor dst=$I, src0=$I, src1=$I, op0=bitwise_and, scalar0=0x1, op1=bitwise_or"},
    {"scalar_tensor_tensor_c2", "vector", "scalar_tensor_tensor dst=$S, src0=$S, src1=$S, op0=abs, op1=add"},
    {"tensor_scalar_reduce_c1", "vector",
     "tensor_scalar_reduce dst=$S, src=$S, result=$S1, op0=add, scalar0=1.0, op1=subtract"},
    {"tensor_scalar_reduce_c2", "vector",
     "tensor_scalar_reduce dst=$S, src=$S, result=$S8, op0=add, scalar0=1.0, op1=add"},
    {"tensor_scalar_reduce_c2", "vector",
     "tensor_scalar_reduce dst=$S, src=$S, result=sbuf[0:128, 0x400] bf16, op0=add, scalar0=1.0, op1=add"},
    {"tensor_scalar_reduce_c3", "vector",
     "tensor_scalar_reduce dst=$I, src=$I, result=$S1, op0=bitwise_and, scalar0=0x1, op1=add"},
    {"tensor_tensor_scan_c1", "vector", "tensor_tensor_scan dst=$S, src0=$P, src1=$P, initial=0.0, op0=add, op1=add"},
    {"tensor_tensor_scan_c2", "vector", "tensor_tensor_scan dst=$S, src0=$S, src1=$S, initial=0.0, op0=add, op1=abs"},
    {"range_select_c1", "vector", "range_select dst=$S, src=$S, bound0=1.0, bound1=1.0, op0=less, op1=add"},
    {"range_select_c2", "vector",
     "range_select dst=$S, src=$S, bound0=1.0, bound1=1.0, op0=less, op1=less, immediate=16777200"},
    {"range_select_c2", "vector",
     "range_select dst=$S, src=$S, bound0=1.0, bound1=1.0, op0=less, op1=less, immediate=-1"},

    {"activation_c1", "scalar", "activation dst=$S, src=$S, result=$S8, function=exp"},
    {"activation_c2", "scalar", "activation dst=$S, src=$S, bias=1.0, function=exp", "trn1"},
    {"tensor_reduce_c1", "vector", "tensor_reduce dst=$S1, src=$S, op0=subtract, axes=1"},
    {"tensor_reduce_c2", "vector", "tensor_reduce dst=$S8, src=$S, op0=add, axes=1"},
    {"tensor_reduce_c2", "vector", "tensor_reduce dst=$S1, src=$S, op0=add, axes=5"},
    {"tensor_reduce_c2", "vector", "tensor_reduce dst=$S, src=$S, op0=add"},
    {"bn_stats_c1", "vector", "bn_stats dst=$S6, src=sbuf[0:128, 0x0 + 1*513] f32"},
    {"bn_stats_c2", "vector", "bn_stats dst=$S8, src=$S"},
    {"bn_aggr_c1", "vector", "bn_aggr dst=sbuf[0:128, 0x400 + 1*2] f32, src=$S"},
    {"bn_aggr_c2", "vector", "bn_aggr dst=$S, src=$S6"},
    {"transpose_c1", "vector", "transpose dst=sbuf[0:128, 0x0 + 1*48] f32, src=sbuf[0:128, 0x0 + 1*48] f32"},
    {"transpose_c2", "vector", "transpose dst=$S, src=$B"},
    {"transpose_c2", "vector", "transpose dst=sbuf[0:128, 0x0 + 1*64] u8, src=sbuf[0:128, 0x0 + 1*64] u8"},
    {"stream_shuffle_c1", "vector", "stream_shuffle dst=$S, src=$I"},
    {"stream_shuffle_c2", "vector", "stream_shuffle dst=$S, src=$S, immediates=[32]"},
    {"stream_shuffle_c2", "vector", "stream_shuffle dst=$S, src=$S, immediates=[0, 0, 0, 0, 1]"},
    {"max8_c1", "vector", "max8 dst=$S8, src=sbuf[0:128, 0x0 + 1*7] f32"},
    {"max8_c2", "vector", "max8 dst=$S6, src=$S"},
    {"find_index8_c1", "vector", "find_index8 dst=$U8, src=sbuf[0:128, 0x0 + 1*7] f32, vals=$S8"},
    {"find_index8_c2", "vector", "find_index8 dst=$S8, src=$S, vals=$S8"},
    {"find_index8_c3", "vector", "find_index8 dst=$U8, src=$S, vals=$S6"},

    {"iota_c1", "gpsimd", "iota dst=$I, immediates=[2147483648]"},
    {"affine_select_c1", "gpsimd", "affine_select dst=$S, src=$S, on_false=0.0, op0=add"},
    {"affine_select_c2", "gpsimd", "affine_select dst=$S, src=$S, on_false=0.0, op0=less, immediates=[0, -2147483649]"},
    {"affine_select_c3", "gpsimd", "affine_select dst=$S, src=$S, on_false=sbuf@0x0, op0=less"},
    {"gpsimd_call_c1", "gpsimd", "gpsimd_call dst=$I"},
    {"gpsimd_call_c1", "gpsimd", "gpsimd_call dst=$I, src0=$I, src1=$I, routine=int_binary, routine_function=99"},
    {"gpsimd_call_c1", "gpsimd", "gpsimd_call dst=$I, src0=$I, src1=$I, routine=float64_binary, routine_function=0"},
    {"gpsimd_call_c2", "gpsimd", "gpsimd_call dst=$I, src0=$I, routine=int_binary, routine_function=add"},
    {"gpsimd_call_c2", "gpsimd",
     "gpsimd_call dst=$I, src0=$I, src1=$I, src2=$I, routine=int_binary, routine_function=add"},
    {"gpsimd_call_c3", "gpsimd",
     "gpsimd_call dst=$I, src0=$I, src1=$I, routine=int_binary, routine_function=add, immediates=[0, 0, 0, 0, 0, 1]"},

    {"dma_copy_c1", "sync", "dma_copy dst=$S1, src=$H, dge_mode=static"},
    {"dma_copy_c1", "sync",
     "dma_copy dst=$S, src=hbm[v0, 0*4000000000 + 0*4000000000 + 0*4000000000 + 0*4000000000 + 0*4000000000] f32, "
     "dge_mode=static"},
    {"dma_copy_c2", "vector", "dma_copy dst=$S, src=$H, dge_mode=hardware"},
    {"dma_copy_c2", "sync", "dma_copy dst=$S, src=$H, dge_mode=software"},
    {"dma_copy_c3", "gpsimd", "dma_copy dst=$S, src=$H, index=sbuf[0:128, 0x800] f32, dge_mode=software"},
    {"dma_copy_c3", "gpsimd", "dma_copy dst=$S, src=$H, index=sbuf[0:64, 0x800] i32, dge_mode=software"},
    {"dma_copy_c3", "gpsimd", "dma_copy dst=$S, src=$H, index=sbuf[0:128, 0x800 + 1*2] i32, dge_mode=software"},
    {"dma_copy_c3", "gpsimd",
     "dma_copy dst=$S, src=hbm[v0, 256*128 + 4*64] f32, index=sbuf[0:128, 0x800] i32, dge_mode=software"},
    {"dma_copy_c3", "gpsimd", "dma_copy dst=$H, src=$H, index=sbuf[0:128, 0x800] i32, dge_mode=software"},
    {"dma_copy_c3", "gpsimd", "dma_copy dst=$S, src=$H, index=sbuf[0:128, 0x800] i32, dge_mode=static"},
    {"dma_copy_c5", "sync", "dma_copy dst=$S, src=$H"},
    {"dma_copy_c5", "sync", "dma_copy dst=$S, src=hbm[v0 + r3*8, 256*128 + 4*64] f32, dge_mode=static"},
    {"dma_copy_c5", "sync", "dma_copy dst=$S, src=hbm[v0, 256*128(r4) + 4*64] f32, dge_mode=static"},
    {"dma_copy_c5", "sync", "dma_copy dst=$S, src=$H, dge_mode=hardware", "trn1"},
    {"dma_copy_c6", "sync", "dma_copy dst=$S, src=$H, dge_mode=static, queue=16"},
    {"dma_copy_c7", "sync", "dma_copy dst=$S, src=$S, dge_mode=static"},
    {"dma_copy_c8", "sync", "dma_copy dst=sbuf[0:1, 0x0] i64, src=hbm[v0] i32, dge_mode=static"},
    {"dma_transpose_c1", "sync", "dma_transpose dst=$S, src=hbm[v0, 512*64 + 4*128] f32, dge_mode=static", "trn1"},
    {"dma_transpose_c2", "sync", "dma_transpose dst=$S, src=hbm[v0, 256*64 + 2*128] bf16, dge_mode=static"},
    {"dma_transpose_c3", "sync", "dma_transpose dst=$S, src=hbm[v0, 512*64 + 4*128] f32"},
    {"dma_transpose_c3", "sync", "dma_transpose dst=$S, src=hbm[v0, 512*64 + 4*128] f32, dge_mode=static, queue=77"},
    {"dma_transpose_c4", "sync", "dma_transpose dst=$S, src=hbm[v0, 512*128 + 4*64] f32, dge_mode=static"},
    {"dma_transpose_c4", "sync", "dma_transpose dst=$S, src=$S, dge_mode=static"},

    {"register_alu_c1", "sync", "register_alu rd=r1, op0=divide"},
    {"branch_c1", "sync", "L0:\nbranch op0=add, target=L0"},
    {"register_load_c1", "sync", "register_load src=sbuf[0:1, 0x0 + 1*2] i32, rd=r1"},
    {"register_load_c1", "sync", "register_load src=hbm[v0] f32, rd=r1"},
    {"register_load_c1", "sync", "register_load src=hbm[v0, 4*2] i32, rd=r1"},
    {"register_store_c1", "sync", "register_store dst=sbuf[0:1, 0x0] f32, rs=r1"},
    {"semaphore_range_clear_c1", "sync", "semaphore_range_clear immediate=200, target=57"},
    {"semaphore_range_clear_c1", "sync", "semaphore_range_clear immediate=-1, target=5"},
};

/// Checked in other places: the codec and the assembler (form), the run (values), or impossible to state with one
/// target.
const std::set<std::string_view> kElsewhere = {
    "register_c1",        // CodecTest, AssemblyTest
    "branch_c2",          // CodecTest
    "call_c1",            // below
    "dma_copy_c4",        // below: PSUM is not among the spaces
    "matmul_c6",          // emulator: what was last written
    "activation_c3",      // emulator: values
    "load_stationary_c1", // operand_c1 comes first while the array has as many rows as there are partitions
    "tensor_scalar_c2",   // the encoding has no other vector operands
};

} // namespace

TEST(Verify, EachConstraintIsEnforced) {
  for (const Case &item : kViolations)
    EXPECT_THAT(check(item, item.text), HasSubstr(std::string("): ") + item.limit + ": ")) << item.text;
}

TEST(Verify, EveryConstraintHasACase) {
  std::set<std::string_view> covered = kElsewhere;
  for (const Case &item : kViolations)
    covered.insert(item.limit);
  std::set<std::string_view> known;
  for (const LimitInfo &limit : generalLimits())
    known.insert(limit.number);
  for (const InstructionInfo &info : instructionTable())
    for (const LimitInfo &limit : info.limits)
      known.insert(limit.number);
  EXPECT_EQ(covered, known);
}

TEST(Verify, LegalNeighboursOfTheViolations) {
  const Case cases[] = {
      {"", "vector", "memset dst=sbuf[96:128, 0x0] f32, value=0.0"},
      {"", "vector", "memset dst=sbuf[64:128, 0x0] f32, value=0.0"},
      {"", "vector", "memset dst=sbuf[0:128, 0x37ffc] f32, value=0.0"},
      {"", "vector", "memset dst=sbuf[0:128, 0x4 + -1*2] f32, value=0.0"},
      {"", "sync", "dma_copy dst=sbuf[3:120, 0x0] f32, src=hbm[v0, 4*117] f32, dge_mode=static"},
      {"", "sync", "dma_copy dst=sbuf[0:1, 0x0] i64, src=hbm[v0] i64, dge_mode=static, queue=15"},
      {"", "vector", "tensor_scalar dst=$S, src=$S, op0=rsqrt"},
      {"", "vector", "tensor_scalar dst=$I, src=$I, op0=bitwise_not, op1=bitwise_and, scalar1=0x1"},
      {"", "gpsimd", "tensor_tensor dst=$S, src0=$S, src1=$S, op0=power"},
      {"", "scalar", "activation dst=$S, src=$S, bias=sbuf@0x0, function=exp", "trn1"},
      {"", "scalar", "activation dst=$S, src=$S, function=exp", "trn1"},
      {"", "tensor",
       "load_stationary src=$B\nmatmul dst=psum[0:64, 0x0 + 1*512] f32, moving=sbuf[0:128, 0x0 + 1*512] bf16"},
      {"", "tensor",
       "load_stationary src=$B\nmatmul dst=psum[0:64, 0x0 + 1*4096] f32, moving=sbuf[0:128, 0x0 + 1*4096] bf16",
       "trn3"},
      {"", "tensor",
       "load_stationary src=sbuf[0:64, 0x0 + 1*32] bf16\nmatmul dst=psum[0:32, 0x0 + 1*64] bf16, moving=sbuf[0:64, 0x0 "
       "+ 1*64] bf16, is_transpose"},
      {"", "sync", "semaphore_range_clear immediate=200, target=56"},
      {"", "sync", "dma_transpose dst=$S, src=hbm[v0, 512*64 + 4*128] f32, dge_mode=static"},
      {"", "sync", "dma_transpose dst=$S, src=sbuf[0:64, 0x0 + 1*128] f32, dge_mode=static"},
      {"", "gpsimd",
       "gpsimd_call dst=sbuf[0:1, 0x0] i64, src0=sbuf[0:1, 0x8] i64, src1=sbuf[0:1, 0x10] i64, routine=int_binary, "
       "routine_function=add"},
  };
  for (const Case &item : cases)
    EXPECT_EQ(check(item, item.text), "no error") << item.text;
}

TEST(Verify, PsumIsNotReachableByDma) {
  Case item = {"", "sync", ""};
  EXPECT_THAT(check(item, "dma_copy dst=$P, src=$H, dge_mode=static"), HasSubstr("expected sbuf or hbm but got psum"));
}

TEST(Verify, CallTargets) {
  Case item = {"", "sync", ""};
  EXPECT_THAT(check(item, "call target=end\nend:"), HasSubstr("call_c1"));
}

TEST(Verify, StationaryIsFollowedThroughBranches) {
  Case item = {"", "tensor", ""};
  const std::string use = "matmul dst=psum[0:64, 0x0 + 1*64] f32, moving=$B\n";
  // Loaded before the loop and used in it.
  EXPECT_EQ(check(item, "load_stationary src=$B\nloop:\n" + use + "branch target=loop, op0=less, rs=r1"), "no error");
  // Nothing is loaded on the first pass.
  EXPECT_EQ(check(item, "loop:\n" + use + "load_stationary src=$B\nbranch target=loop, op0=less, rs=r1"), "no error");
  EXPECT_THAT(check(item, "branch target=skip\nload_stationary src=$B\nskip:\n" + use),
              HasSubstr("matmul_c1: a matmul needs a stationary"));
  // Two paths with different stationaries: left to the run.
  EXPECT_EQ(check(item, "load_stationary src=$B\nbranch target=skip, op0=less, rs=r1\n"
                        "load_stationary src=sbuf[0:32, 0x0 + 1*64] bf16\nskip:\n" +
                            use),
            "no error");
  // The same on both paths, and it is the wrong one.
  EXPECT_THAT(check(item, "load_stationary src=sbuf[0:32, 0x0 + 1*64] bf16\nbranch target=skip, op0=less, rs=r1\n"
                          "load_stationary src=sbuf[0:32, 0x0 + 1*64] bf16\nskip:\n" +
                              use),
              HasSubstr("but they are 128 and 32"));
  // A call may load another.
  EXPECT_EQ(check(item, "call target=sub\n" + use + "return\nsub:\nload_stationary src=$B\nreturn"), "no error");
}
