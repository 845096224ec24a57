# Debian's LLVM/MLIR 22. Tools link the shared libraries; the Python module links the archives (see lib/CAPI), because an
# archive and the shared library must never meet in one binary (two registries of everything).

list(APPEND CMAKE_PREFIX_PATH /usr/lib/llvm-22)
find_package(MLIR 22.1 REQUIRED CONFIG)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
# Dialect and pass headers are included by their path from the root: "dialects/Neuron/NeuronOps.h".
include_directories(${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/include
                    ${PROJECT_BINARY_DIR}/include)
set(CMAKE_BUILD_RPATH /usr/lib/llvm-22/lib)
set(CMAKE_INSTALL_RPATH /usr/lib/llvm-22/lib)

# MLIR's headers are most of the compile time of a pass: they are precompiled once for all libraries below.
option(NEURON_PRECOMPILED_HEADERS "precompile MLIR's headers" ON)
if(NEURON_PRECOMPILED_HEADERS)
  file(WRITE ${PROJECT_BINARY_DIR}/NeuronMlirPch.cpp "")
  add_library(NeuronMlirPch STATIC ${PROJECT_BINARY_DIR}/NeuronMlirPch.cpp)
  neuron_target_options(NeuronMlirPch)
  target_compile_options(NeuronMlirPch PRIVATE -fpch-preprocess)
  target_precompile_headers(NeuronMlirPch PRIVATE
    <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/MemRef/IR/MemRef.h>
    <mlir/Dialect/SCF/IR/SCF.h> <mlir/IR/Builders.h> <mlir/IR/BuiltinTypes.h> <mlir/IR/IRMapping.h>
    <mlir/IR/PatternMatch.h> <mlir/Pass/Pass.h> <mlir/Pass/PassManager.h>)
endif()

# add_neuron_mlir_library(<name> SOURCES ... LINK ... DEPENDS ...): as add_neuron_library, with the precompiled headers.
function(add_neuron_mlir_library name)
  add_neuron_library(${name} ${ARGN})
  if(NEURON_PRECOMPILED_HEADERS)
    target_compile_options(${name} PRIVATE -fpch-preprocess)
    target_precompile_headers(${name} REUSE_FROM NeuronMlirPch)
  endif()
endfunction()
