// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text form of programs. Printing and parsing are exact inverses on well-formed programs. docs/Encoding.md has the
// grammar; in short, one instruction per line:
//
//   stream vector {
//   L0:
//     tensor_tensor dst=sbuf[0:128, 0x200 + 1*64] f32, src0=sbuf[0:128, 0x0 + 1*64] f32, src1=..., op0=add,
//       wait(S[10] >= 16, S[11] >= r5 + 2), update(S[0]++), debug=2   // kernel0: neuron.binary<add>
//     branch target=L0, op0=less, rs=r3, immediate=8
//   }

#ifndef NEURON_ISA_ASSEMBLY_H
#define NEURON_ISA_ASSEMBLY_H

#include <functional>
#include <string>
#include <string_view>

#include "neuron/Isa/Instruction.h"
#include "neuron/Support/Error.h"

namespace neuroncore::isa {

/// The comment of an instruction, or an empty text.
using CommentSource = std::function<std::string(const Instruction &)>;

/// One instruction; branch targets are written as L and the instruction index.
std::string printInstruction(const Instruction &instruction);

/// "sbuf[0:128, 0x1c00 + 1*512] f32"; also for tools that show operands.
std::string printTile(const TilePattern &tile);
std::string printHbm(const HbmPattern &pattern);
std::string printWait(const Wait &wait);
std::string printUpdate(const Update &update);

std::string printStream(Engine engine, const Stream &stream, const CommentSource &comments = {});
std::string printProgram(const Program &program, const CommentSource &comments = {});

/// Streams in any order, each at most once. Errors give the line. The result is well formed (verifyForm,
/// verifyTargets).
Expected<Program> parseProgram(std::string_view text);

} // namespace neuroncore::isa

#endif // NEURON_ISA_ASSEMBLY_H
