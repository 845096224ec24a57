# Part of open-torch-neuronx, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Print a kernel whose loop loads and uses the given number of buffers, each by a transfer of its own.

usage: many_transfers.py COUNT
"""

import sys

HBM = "memref<8192xf32, #neuron.space<hbm>>"
SBUF = "memref<128x256xi8, #neuron.space<sbuf>>"
TILE = "tile<f32 [0 : 128] at 0 [1 x 64]>"

VARIABLE = (
    'neuron.kind = "input", neuron.name = "input0", neuron.shape = array<i64: 8192>, neuron.strides = array<i64: 1>'
)

print(f"func.func @many(%x: {HBM} {{{VARIABLE}}}) {{\n  nisa.kernel @k {{\n    nisa.loop %i = 4 {{")
for k in range(int(sys.argv[1])):
    print(f"      %a{k} = nisa.alloc {{address = {256 * k} : i64}} : {SBUF}")
    print(
        f"      nisa.dma_copy sync(%a{k} {TILE}, %x hbm<f32 at 0 [4 x 8192]>, none) "
        f'fields {{dge_mode = "hwdge"}} : {SBUF}, {HBM}'
    )
    print(
        f"      nisa.tensor_scalar vector(%a{k} {TILE}, %a{k} {TILE}) scalars(1.0 : f32, none) "
        f'fields {{op0 = "add", op1 = "bypass"}} : {SBUF}, {SBUF}'
    )
print("    }\n  }\n  return\n}")
