// RUN: neuron-opt %s --split-input-file --verify-diagnostics

//===------------------------------------------------------------------------------------------------------------------
// Buffers and loops
//===------------------------------------------------------------------------------------------------------------------

func.func @alloc_in_hbm() {
  // expected-error @+1 {{'nisa.alloc' op expected a buffer in sbuf or psum but got 'memref<128x512xi8, #neuron.space<hbm>>'}}
  %0 = nisa.alloc : memref<128x512xi8, #neuron.space<hbm>>
  return
}

// -----

func.func @alloc_without_space() {
  // expected-error @+1 {{'nisa.alloc' op expected a buffer in sbuf or psum but got 'memref<128x512xi8>'}}
  %0 = nisa.alloc : memref<128x512xi8>
  return
}

// -----

func.func @alloc_element() {
  // expected-error @+1 {{'nisa.alloc' op expected partitions x bytes x i8 but got}}
  %0 = nisa.alloc : memref<128x512xf32, #neuron.space<sbuf>>
  return
}

// -----

func.func @alloc_rank() {
  // expected-error @+1 {{'nisa.alloc' op expected partitions x bytes x i8 but got}}
  %0 = nisa.alloc : memref<512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @alloc_dynamic() {
  // expected-error @+1 {{'nisa.alloc' op expected partitions x bytes x i8 but got}}
  %0 = nisa.alloc : memref<128x?xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @alloc_address() {
  // expected-error @+1 {{'nisa.alloc' op expected address of at least 0 but got -64}}
  %0 = nisa.alloc {address = -64 : i64} : memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @alloc_partition() {
  // expected-error @+1 {{'nisa.alloc' op expected partition of at least 0 but got -32}}
  %0 = nisa.alloc {partition = -32 : i64} : memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @loop_trips() {
  // expected-error @+1 {{'nisa.loop' op expected a trip count of at least 0 but got -1}}
  nisa.loop %i = -1 {}
  return
}

// -----

func.func @loop_without_copies() {
  // expected-error @+1 {{'nisa.loop' op expected at least one region}}
  "nisa.loop"() <{trips = 2 : i64}> : () -> ()
  return
}

// -----

func.func @loop_argument() {
  // expected-error @+1 {{'nisa.loop' op expected one index argument per region}}
  "nisa.loop"() <{trips = 2 : i64}> ({
  ^bb0(%i: i32):
  }) : () -> ()
  return
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Attributes
//===------------------------------------------------------------------------------------------------------------------

// expected-error @+1 {{expected dma or engine but got queue}}
func.func private @wait_counter() attributes {a = #nisa.wait<queue 1 until 2>}

// -----

// expected-error @+1 {{expected 'until'}}
func.func private @wait_without_value() attributes {a = #nisa.wait<dma 1>}

// -----

// expected-error @+1 {{expected '['}}
func.func private @tile_without_partitions() attributes {a = #nisa.tile<f32 at 0 [1 x 8]>}

// -----

// expected-error @+1 {{expected 'at'}}
func.func private @hbm_without_offset() attributes {a = #nisa.hbm<f32 [4 x 8]>}

// -----

// expected-error @+1 {{expected 'at'}}
func.func private @vector_without_offset() attributes {a = #nisa.vector<0>}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Slots
//===------------------------------------------------------------------------------------------------------------------

func.func @engine(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected an engine that runs it but got tensor}}
  nisa.tensor_copy tensor(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @unknown_engine(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected an engine that runs it but got dsp}}
  nisa.tensor_copy dsp(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @tile_slots(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected 2 tile slots but got 1}}
  nisa.tensor_copy vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @scalar_slots(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.memset' op expected 1 scalar slots but got 2}}
  nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>) scalars(1.0 : f32, 2.0 : f32) : memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @required_tile(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected tile src}}
  nisa.tensor_copy vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, none) : memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @no_pattern(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected an access pattern for tile dst but got 1 : i64}}
  "nisa.tensor_copy"(%a, %a) <{engine = "vector", fields = {}, operandSegmentSizes = array<i32: 2, 0>, scalars = [], tiles = [1, #nisa.tile<f32 [0 : 128] at 0 [1 x 8]>]}> : (memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>) -> ()
  return
}

// -----

func.func @buffer_count(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected 2 buffers but got 1}}
  "nisa.tensor_copy"(%a) <{engine = "vector", fields = {}, operandSegmentSizes = array<i32: 1, 0>, scalars = [], tiles = [#nisa.tile<f32 [0 : 128] at 0 [1 x 8]>, #nisa.tile<f32 [0 : 128] at 0 [1 x 8]>]}> : (memref<128x512xi8, #neuron.space<sbuf>>) -> ()
  return
}

// -----

func.func @counter_count(%a: memref<128x512xi8, #neuron.space<sbuf>>, %h: memref<1024xf32, #neuron.space<hbm>>, %i: index) {
  // expected-error @+1 {{'nisa.dma_copy' op expected 2 loop counters but got 1}}
  nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %h hbm<f32 at 0 + 4 + 8 [4 x 1024]>, none) ivs(%i) : memref<128x512xi8, #neuron.space<sbuf>>, memref<1024xf32, #neuron.space<hbm>>
  return
}

// -----

func.func @counter_of_no_loop(%a: memref<128x512xi8, #neuron.space<sbuf>>, %h: memref<1024xf32, #neuron.space<hbm>>, %i: index) {
  // expected-error @+1 {{'nisa.dma_copy' op expected loop counters of nisa.loop}}
  nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %h hbm<f32 at 0 + 4 [4 x 1024]>, none) ivs(%i) : memref<128x512xi8, #neuron.space<sbuf>>, memref<1024xf32, #neuron.space<hbm>>
  return
}

// -----

func.func @hbm_pattern_of_tile(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.dma_copy' op expected a tile pattern for tile dst}}
  nisa.dma_copy sync(%a hbm<f32 at 0 [4 x 1024]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, none) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @tile_pattern_of_hbm(%a: memref<128x512xi8, #neuron.space<sbuf>>, %h: memref<1024xf32, #neuron.space<hbm>>) {
  // expected-error @+1 {{'nisa.dma_copy' op expected an hbm pattern for tile dst}}
  nisa.dma_copy sync(%h tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, none) : memref<1024xf32, #neuron.space<hbm>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @space_of_slot(%h: memref<1024xf32, #neuron.space<hbm>>, %a: memref<128x512xi8, #neuron.space<psum>>) {
  // expected-error @+1 {{'nisa.dma_copy' op tile src may not be in psum}}
  nisa.dma_copy sync(%h hbm<f32 at 0 [4 x 1024]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, none) : memref<1024xf32, #neuron.space<hbm>>, memref<128x512xi8, #neuron.space<psum>>
  return
}

// -----

func.func @hbm_in_compute(%a: memref<128x512xi8, #neuron.space<sbuf>>, %h: memref<1024xf32, #neuron.space<hbm>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op tile src may not be in hbm}}
  nisa.tensor_copy vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %h hbm<f32 at 0 [4 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<1024xf32, #neuron.space<hbm>>
  return
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Patterns
//===------------------------------------------------------------------------------------------------------------------

func.func @dynamic_buffer(%h: memref<?xf32, #neuron.space<hbm>>) {
  // expected-error @+1 {{operand #0 must be variadic of HBM, SBUF or PSUM buffer of static size}}
  nisa.dma_copy sync(%h hbm<f32 at 0 [4 x 8]>, %h hbm<f32 at 64 [4 x 8]>, none) : memref<?xf32, #neuron.space<hbm>>, memref<?xf32, #neuron.space<hbm>>
  return
}

// -----

func.func @buffer_rank(%a: memref<512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.memset' op expected partitions x bytes x i8 but got 'memref<512xi8, #neuron.space<sbuf>>'}}
  nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>) scalars(1.0 : f32) : memref<512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @free_dimensions(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected at most 4 free dimensions but got 5}}
  nisa.tensor_copy vector(%a tile<f32 [0 : 1] at 0 [1 x 1, 1 x 1, 1 x 1, 1 x 1, 1 x 1]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @step_range(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected a 16-bit step and count but got 32768 x 1}}
  nisa.tensor_copy vector(%a tile<f32 [0 : 1] at 0 [32768 x 1]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @count_range(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected a 16-bit step and count but got 0 x 65536}}
  nisa.tensor_copy vector(%a tile<f32 [0 : 1] at 0 [0 x 65536]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @count_zero(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected a 16-bit step and count but got 1 x 0}}
  nisa.tensor_copy vector(%a tile<f32 [0 : 1] at 0 [1 x 0]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @partitions_past_the_end(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected partitions within [0, 128) but got 64 + 65}}
  nisa.tensor_copy vector(%a tile<f32 [64 : 65] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @partitions_before_the_start(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected partitions within [0, 128) but got -32 + 64}}
  nisa.tensor_copy vector(%a tile<f32 [-32 : 64] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @no_partitions(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected partitions within [0, 128) but got 0 + 0}}
  nisa.tensor_copy vector(%a tile<f32 [0 : 0] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @bytes_past_the_end(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected bytes within [0, 512) but got [4, 516)}}
  nisa.tensor_copy vector(%a tile<f32 [0 : 128] at 4 [1 x 128]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @bytes_before_the_start(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected bytes within [0, 512) but got [-4, 8)}}
  nisa.tensor_copy vector(%a tile<f32 [0 : 128] at 4 [-1 x 3]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @dtype(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected a dtype of the instruction set but got 'index'}}
  nisa.tensor_copy vector(%a tile<index [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @dtype_width(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_copy' op expected a dtype of the instruction set but got 'i12'}}
  nisa.tensor_copy vector(%a tile<i12 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @hbm_dimensions(%a: memref<128x512xi8, #neuron.space<sbuf>>, %h: memref<1024xf32, #neuron.space<hbm>>) {
  // expected-error @+1 {{'nisa.dma_copy' op expected at most 5 HBM dimensions but got 6}}
  nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %h hbm<f32 at 0 [4 x 1, 4 x 1, 4 x 1, 4 x 1, 4 x 1, 4 x 1024]>, none) : memref<128x512xi8, #neuron.space<sbuf>>, memref<1024xf32, #neuron.space<hbm>>
  return
}

// -----

func.func @hbm_count(%a: memref<128x512xi8, #neuron.space<sbuf>>, %h: memref<1024xf32, #neuron.space<hbm>>) {
  // expected-error @+1 {{'nisa.dma_copy' op expected a 32-bit count of at least 1 but got 0}}
  nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %h hbm<f32 at 0 [4 x 0]>, none) : memref<128x512xi8, #neuron.space<sbuf>>, memref<1024xf32, #neuron.space<hbm>>
  return
}

// -----

func.func @hbm_dtype(%a: memref<128x512xi8, #neuron.space<sbuf>>, %h: memref<1024xf32, #neuron.space<hbm>>) {
  // expected-error @+1 {{'nisa.dma_copy' op expected a dtype of the instruction set but got 'complex<f32>'}}
  nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %h hbm<complex<f32> at 0 [8 x 1024]>, none) : memref<128x512xi8, #neuron.space<sbuf>>, memref<1024xf32, #neuron.space<hbm>>
  return
}

// -----

//===------------------------------------------------------------------------------------------------------------------
// Scalars and fields
//===------------------------------------------------------------------------------------------------------------------

func.func @scalar_kind(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.memset' op expected a number or a vector for scalar value but got "one"}}
  nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>) scalars("one") : memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @scalar_bits(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.memset' op expected 32 bits for scalar value but got 4294967296}}
  nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>) scalars(4294967296 : i64) : memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @vector_reach(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.memset' op expected bytes within [0, 512) but got [510, 514)}}
  nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>) scalars(%a vector<at 510>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @vector_space(%a: memref<128x512xi8, #neuron.space<sbuf>>, %h: memref<1024xf32, #neuron.space<hbm>>) {
  // expected-error @+1 {{'nisa.memset' op expected a vector in sbuf or psum but got 'memref<1024xf32, #neuron.space<hbm>>'}}
  nisa.memset vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>) scalars(%h vector<at 0>) : memref<128x512xi8, #neuron.space<sbuf>>, memref<1024xf32, #neuron.space<hbm>>
  return
}

// -----

func.func @unknown_operator(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_tensor' op unexpected value "plus" of field op0}}
  nisa.tensor_tensor vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) fields {op0 = "plus"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @operator_kind(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_tensor' op unexpected value 1 : i64 of field op0}}
  nisa.tensor_tensor vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) fields {op0 = 1} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @misspelt_field(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_tensor' op unexpected field opp0}}
  nisa.tensor_tensor vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) fields {opp0 = "add"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @field_of_other_instructions(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_tensor' op unexpected field queue}}
  nisa.tensor_tensor vector(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) fields {op0 = "add", queue = 1} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @flag_kind(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_reduce' op unexpected value 1 : i64 of field negate}}
  nisa.tensor_reduce vector(%a tile<f32 [0 : 128] at 0 [1 x 1]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) fields {axes = 1, negate = 1, op0 = "add"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @number_range(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.tensor_reduce' op unexpected value 300 : i64 of field axes}}
  nisa.tensor_reduce vector(%a tile<f32 [0 : 128] at 0 [1 x 1]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>) fields {axes = 300, op0 = "add"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @unknown_dge_mode(%a: memref<128x512xi8, #neuron.space<sbuf>>, %h: memref<1024xf32, #neuron.space<hbm>>) {
  // expected-error @+1 {{'nisa.dma_copy' op unexpected value "fast" of field dge_mode}}
  nisa.dma_copy sync(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %h hbm<f32 at 0 [4 x 1024]>, none) fields {dge_mode = "fast"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<1024xf32, #neuron.space<hbm>>
  return
}

// -----

func.func @immediates_count(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.iota' op unexpected value array<i64: 1, 2, 3, 4, 5, 6, 7> of field immediates}}
  nisa.iota gpsimd(%a tile<i32 [0 : 128] at 0 [1 x 8]>) fields {immediates = array<i64: 1, 2, 3, 4, 5, 6, 7>} : memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @unknown_routine(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.gpsimd_call' op unexpected value "fft" of field routine}}
  nisa.gpsimd_call gpsimd(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, none, none, none) fields {routine = "fft"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @routine_function(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.gpsimd_call' op unexpected value "cube" of field function}}
  nisa.gpsimd_call gpsimd(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, none, none, none) fields {function = "cube", routine = "int_binary"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}

// -----

func.func @no_routine(%a: memref<128x512xi8, #neuron.space<sbuf>>) {
  // expected-error @+1 {{'nisa.gpsimd_call' op expected field routine}}
  nisa.gpsimd_call gpsimd(%a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, %a tile<f32 [0 : 128] at 0 [1 x 8]>, none, none, none) fields {function = "add"} : memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>, memref<128x512xi8, #neuron.space<sbuf>>
  return
}
