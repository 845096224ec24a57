// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether instructions are legal. Errors start with the number of the broken constraint of lib/Isa/instructions.toml,
// for example "tensor_tensor_c1: src0 and src1 are not both in psum".

#ifndef NEURON_ISA_VERIFY_H
#define NEURON_ISA_VERIFY_H

#include <span>

#include "neuron/Isa/Instruction.h"
#include "neuron/Support/Error.h"
#include "neuron/Target/MachineModel.h"

namespace neuroncore::isa {

/// What the encoding can carry, whatever the target: known codes, operands present and absent as the opcode has them,
/// members that the opcode does not use at their defaults.
Status verifyForm(Engine engine, const Instruction &instruction);

/// verifyForm, and the constraints of the instruction on the target.
Status verifyInstruction(const target::MachineModel &model, Engine engine, const Instruction &instruction);

/// Branches and calls go to instructions of the stream.
Status verifyTargets(Engine engine, std::span<const Instruction> stream);

/// Every instruction, the targets of branches and calls, and on the tensor engine the agreement of each matmul with the
/// stationary that is loaded, where that is known on all paths.
Status verifyStream(const target::MachineModel &model, Engine engine, std::span<const Instruction> stream);
Status verifyProgram(const target::MachineModel &model, const Program &program);

} // namespace neuroncore::isa

#endif // NEURON_ISA_VERIFY_H
