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
