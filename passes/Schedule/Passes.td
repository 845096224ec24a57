// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifndef NEURON_SCHEDULE_PASSES_TD
#define NEURON_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

class TargetOption<string what> : Option<"target", "target", "std::string", "\"trn2\"", what>;

def AssignTransfersPass : Pass<"neuron-schedule-assign-transfers", "::mlir::ModuleOp"> {
  let summary = "choose who triggers each transfer, and its queue";
  let description = [{
    Changes: engine, descriptor generation mode and queue of each `nisa.dma_copy`. Loads go to the sync engine, which has
    nothing else to do and so runs ahead; a store goes to the engine that computes the value when that engine can trigger
    transfers, else to GpSimd when it has no work in that loop, else to the less busy of GpSimd and the scalar engine. Outside of
    loops, loads of what earlier kernels computed, and stores, wait for all that is before them; the scalar engine triggers
    those before its first and behind its last instruction in the kernel, so that the sync engine goes on to the next
    kernel's weights. Each transfer gets a queue of its own as long as there are queues, since a queue's latency is hidden by
    other queues.

    Requires: the contract of the select phase. Guarantees: the limit dma_copy_c2. Fails when: nothing.

    Example: `nisa.dma_copy sync(...)` of a store becomes `nisa.dma_copy gpsimd(...) fields {dge_mode = "swdge", ...}`.
  }];
  let options = [TargetOption<"target whose descriptor generators are used">];
}

def RotateLoopsPass : Pass<"neuron-schedule-rotate-loops", "::mlir::ModuleOp"> {
  let summary = "give innermost loops with transfers several copies of their body";
  let description = [{
    Changes: the body of each innermost loop that moves data is copied (2, 3 or 4 copies) with buffers of its own per copy,
    so that loads of later iterations run beside the computation of earlier ones. The number follows from the latency of an
    iteration over its slowest stage, and from what fits in SBUF.

    Requires: the contract of the select phase. Guarantees: copies of a loop hold the same instructions. Fails when: nothing.

    Example: `nisa.loop %i = 32 { A }` becomes `nisa.loop %i = 32 { A } copy { A' }`.
  }];
  let options = [TargetOption<"target whose memory bounds the copies">];
}

def AllocateBuffersPass : Pass<"neuron-schedule-allocate-buffers", "::mlir::ModuleOp"> {
  let summary = "assign SBUF and PSUM addresses";
  let description = [{
    Changes: each `nisa.alloc` gets its address. Buffers whose lives do not overlap may share bytes; buffers of one loop body
    share only when memory is short, and copies of a body never, because sharing orders their instructions. A result may take
    over the buffer of an operand that dies in the same element-wise instruction. Kernels of one program alternate between the
    two halves of SBUF and PSUM where a half is enough for buffers that share nothing, so that neighbours overlap in time.

    Requires: the contract of the select phase. Guarantees: every buffer has an address inside the usable memory.

    Fails when: a kernel's buffers do not fit; the message gives the bytes per partition needed and available.

    Example: `nisa.alloc : memref<128x4096xi8, ...>` becomes `nisa.alloc {address = 8192 : i64} : ...`.
  }];
  let options = [TargetOption<"target whose memory is allocated">];
}

def PipelineLoopsPass : Pass<"neuron-schedule-pipeline-loops", "::mlir::ModuleOp"> {
  let summary = "run the end of an iteration beside the start of the next";
  let description = [{
    Changes: the order of instructions in innermost loops with copies. Each instruction gets a stage by modulo scheduling
    with the machine model's times; the new body runs stage s of iteration i - s, and what the first and last iterations have
    more or less of is placed before and after the loop. Code grows by (stages - 1) bodies, at most 2. A loop with fewer
    iterations than copies and stages is written out in that order. A loop stays as it is when the simulated gain is below
    2 %, or with more than 200 instructions.

    Requires: addresses; copies of a body on bytes of their own. Guarantees: instructions that touch the same bytes, one of
    them writing, keep their order. Fails when: nothing.

    Example: with `B` in the second stage, `nisa.loop %i = 32 { A(i) B(i) } copy { A'(i) B'(i) }` becomes
    `A(0) nisa.loop %i = 31 { B(i) A'(i+1) } copy { B'(i) A(i+1) } B'(31)`.
  }];
  let options = [TargetOption<"target whose times decide">];
}

def SynchronisePass : Pass<"neuron-schedule-synchronise", "::mlir::ModuleOp"> {
  let summary = "derive waits and updates from the dependences of the program";
  let description = [{
    Changes: each instruction shows its waits (`nisa.waits`) and its DMA counter (`nisa.dma_site`). The scheme and the library
    that derives it are described in docs/Synchronisation.md; the emit phase derives the same waits from the same program, so
    editing these attributes has no effect on the streams.

    Requires: addresses. Guarantees: VerifySchedule.

    Fails when: the program needs more semaphores or registers than a core has.

    Example: `nisa.tensor_tensor vector(...)` gets `nisa.waits = [#nisa.wait<engine 1 until loop 0 + 2>]`.
  }];
}

def VerifySchedulePass : Pass<"neuron-schedule-verify", "::mlir::ModuleOp"> {
  let summary = "check the contract at the end of the schedule phase";
  let description = [{
    Changes: nothing. Requires: nothing.

    Guarantees: (c1) every buffer has an address inside the usable memory of the target; (c2) every instruction keeps the limits
    of instruction set and target with its final addresses; (c3) copies of a loop hold the same instructions.

    Fails when: a clause is broken; the message names the clause.

    Example: a buffer at address 212984 of trn2 breaks c1.
  }];
  let options = [TargetOption<"target whose limits hold">];
}

#endif // NEURON_SCHEDULE_PASSES_TD
