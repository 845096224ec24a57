// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sample program.

#include "SampleNeff.h"

#include <cstring>

namespace neuroncore::neff {

using namespace isa;

TilePattern sampleTile(uint32_t byteOffset, int columns) {
  TilePattern tile;
  tile.space = MemorySpace::Sbuf;
  tile.dtype = Dtype::F32;
  tile.numPartitions = 128;
  tile.byteOffset = byteOffset;
  tile.count[3] = uint16_t(columns);
  return tile;
}

HbmPattern sampleRows(uint16_t variable, int columns, int rows) {
  HbmPattern pattern;
  pattern.variable = variable;
  pattern.dtype = Dtype::F32;
  pattern.count = {uint32_t(rows), 1, 1, 1, uint32_t(columns)};
  pattern.step = {4 * columns, 0, 0, 0, 4};
  return pattern;
}

Instruction sampleDma(TilePattern tile, HbmPattern pattern, bool store) {
  Instruction in;
  in.opcode = Opcode::DmaCopy;
  in.dgeMode = DgeMode::Static;
  in.tiles[store ? 1 : 0] = tile;
  in.tiles[store ? 0 : 1].space = MemorySpace::Hbm;
  in.hbm[store ? 0 : 1] = pattern;
  in.update = {UpdateOp::Increment, 10, 0, 1};
  in.debugId = 1;
  return in;
}

static Variable tensor(std::string name, Variable::Kind kind, std::vector<int64_t> shape) {
  Variable variable;
  variable.name = std::move(name);
  variable.kind = kind;
  variable.dtype = Dtype::F32;
  variable.bytes = 4;
  for (int64_t size : shape)
    variable.bytes *= size;
  variable.shape = std::move(shape);
  return variable;
}

Neff sampleNeff() {
  Neff neff;
  neff.name = "sample";
  neff.compilerVersion = "0.1.0";
  neff.variables = {
      tensor("x", Variable::Kind::Input, {128, 64}),    tensor("w", Variable::Kind::Constant, {128, 64}),
      tensor("out", Variable::Kind::Output, {128, 64}), tensor("x.updated", Variable::Kind::Output, {128, 64}),
      tensor("scratch", Variable::Kind::Scratch, {}),   tensor("parameters", Variable::Kind::Input, {}),
      tensor("rng", Variable::Kind::Input, {})};
  neff.variables[kXUpdated].aliasOf = kX;
  neff.variables[kX].strides = {64, 1};
  std::vector<float> w(128 * 64);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = float(i) / 8;
  neff.variables[kW].data.resize(w.size() * 4);
  std::memcpy(neff.variables[kW].data.data(), w.data(), w.size() * 4);
  neff.variables[kScratch].bytes = 1 << 20;
  neff.variables[kScratch].dtype = Dtype::None;
  neff.variables[kParameters].bytes = 32;
  neff.variables[kParameters].role = Variable::Role::Parameters;
  neff.variables[kParameters].dtype = Dtype::None;
  neff.variables[kRng] =
      Variable{"rng", Variable::Kind::Input, Variable::Role::RngState, 16, 64, Dtype::I64, {2}, {}, -1, {}};
  neff.rngIncrement = 4;
  neff.semaphores = 12;
  neff.sbufBytesPerPartition = 1024;
  neff.debug = {
      {"kernel0", "neuron.load", {0}}, {"kernel0", "neuron.binary<add>", {0, 1}}, {"kernel0", "neuron.store", {}}};
  neff.metricsJson = "{\"kernels\": 1}";

  Stream &sync = neff.program[size_t(streamIndex(Engine::Sync))];
  sync.push_back(sampleDma(sampleTile(0, 64), sampleRows(kX, 64), false));
  sync.push_back(sampleDma(sampleTile(256, 64), sampleRows(kW, 64), false));
  sync.back().update.semaphore = 11;
  for (uint16_t variable : {kOut, kXUpdated}) {
    Instruction store = sampleDma(sampleTile(512, 64), sampleRows(variable, 64), true);
    store.numWaits = 1;
    store.waits[0] = {0, 0, 0, false, 2};
    store.debugId = 3;
    sync.push_back(store);
  }

  Instruction add;
  add.opcode = Opcode::TensorTensor;
  add.op0 = AluOp::Add;
  add.debugId = 2;
  add.tiles = {sampleTile(512, 64), sampleTile(0, 64), sampleTile(256, 64)};
  add.numWaits = 2;
  add.waits[0] = {10, 0, 0, false, 16};
  add.waits[1] = {11, 0, 0, false, 16};
  add.update = {UpdateOp::Increment, 0, 0, 1};
  Instruction scale;
  scale.opcode = Opcode::TensorScalar;
  scale.op0 = AluOp::Multiply;
  scale.debugId = 2;
  scale.tiles = {sampleTile(512, 64), sampleTile(512, 64)};
  scale.scalars[0] = ScalarOperand::constant(0.5f);
  scale.update = {UpdateOp::Increment, 0, 0, 1};
  neff.program[size_t(streamIndex(Engine::Vector))] = {add, scale};

  Instruction exp;
  exp.opcode = Opcode::Activation;
  exp.function = ActivationFunction::Exp;
  exp.tiles = {sampleTile(768, 64), sampleTile(512, 64)};
  exp.numWaits = 1;
  exp.waits[0] = {0, 0, 0, false, 2};
  neff.program[size_t(streamIndex(Engine::Scalar))] = {exp};
  return neff;
}

Neff sampleRuns() {
  Neff neff = sampleNeff();
  neff.parameterBytes = {32768, 32768, 16};
  neff.runs = {{0, {kX, kOut}}, {0, {kW, kXUpdated, kRng}}, {2, {kParameters}}};
  Stream &sync = neff.program[size_t(streamIndex(Engine::Sync))];
  sync[0].hbm[1].variable = kParameterFlag | 0;
  sync[2].hbm[0].variable = kParameterFlag | 1;
  return neff;
}

} // namespace neuroncore::neff
