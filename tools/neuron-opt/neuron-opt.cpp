// Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

#include "dialects/NISA/NISADialect.h"
#include "dialects/Neuron/NeuronOps.h"
#include "passes/Graph/Passes.h"
#include "passes/Kernels/Passes.h"
#include "passes/Pipelines/Phases.h"
#include "passes/Schedule/Passes.h"
#include "passes/Select/Passes.h"
#include "passes/Tile/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::neuron::NeuronDialect, mlir::nisa::NISADialect, mlir::func::FuncDialect,
                  mlir::arith::ArithDialect, mlir::scf::SCFDialect, mlir::memref::MemRefDialect>();
  mlir::registerTransformsPasses();
  mlir::neuron::registerNeuronKernelsPasses();
  mlir::neuron::registerNeuronTilePasses();
  mlir::neuron::registerNeuronSelectPasses();
  mlir::neuron::registerNeuronSchedulePasses();
  mlir::neuron::registerNeuronGraphPasses();
  mlir::neuron::registerNeuronPipelinesPasses();
  mlir::neuron::registerPipelines();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "neuron optimizer driver\n", registry));
}
