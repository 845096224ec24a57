// RUN: neuron-opt %s | neuron-opt | FileCheck %s

// Every function name parses and prints; what it computes is tested end to end.

// CHECK-LABEL: func.func @unary_functions
func.func @unary_functions(%x: tensor<4xf32>, %p: tensor<4xi1>) {
  // CHECK: neuron.unary <abs>
  %0 = neuron.unary <abs> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <neg>
  %1 = neuron.unary <neg> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <sign>
  %2 = neuron.unary <sign> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <square>
  %3 = neuron.unary <square> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <sqrt>
  %4 = neuron.unary <sqrt> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <rsqrt>
  %5 = neuron.unary <rsqrt> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <reciprocal>
  %6 = neuron.unary <reciprocal> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <exp>
  %7 = neuron.unary <exp> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <exp2>
  %8 = neuron.unary <exp2> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <expm1>
  %9 = neuron.unary <expm1> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <log>
  %10 = neuron.unary <log> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <log2>
  %11 = neuron.unary <log2> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <log10>
  %12 = neuron.unary <log10> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <log1p>
  %13 = neuron.unary <log1p> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <sin>
  %14 = neuron.unary <sin> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <cos>
  %15 = neuron.unary <cos> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <tan>
  %16 = neuron.unary <tan> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <asin>
  %17 = neuron.unary <asin> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <acos>
  %18 = neuron.unary <acos> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <atan>
  %19 = neuron.unary <atan> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <sinh>
  %20 = neuron.unary <sinh> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <cosh>
  %21 = neuron.unary <cosh> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <tanh>
  %22 = neuron.unary <tanh> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <asinh>
  %23 = neuron.unary <asinh> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <acosh>
  %24 = neuron.unary <acosh> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <atanh>
  %25 = neuron.unary <atanh> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <erf>
  %26 = neuron.unary <erf> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <erfc>
  %27 = neuron.unary <erfc> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <erfinv>
  %28 = neuron.unary <erfinv> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <sigmoid>
  %29 = neuron.unary <sigmoid> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <relu>
  %30 = neuron.unary <relu> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <gelu>
  %31 = neuron.unary <gelu> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <gelu_tanh>
  %32 = neuron.unary <gelu_tanh> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <silu>
  %33 = neuron.unary <silu> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <softplus>
  %34 = neuron.unary <softplus> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <mish>
  %35 = neuron.unary <mish> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <floor>
  %36 = neuron.unary <floor> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <ceil>
  %37 = neuron.unary <ceil> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <round>
  %38 = neuron.unary <round> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <trunc>
  %39 = neuron.unary <trunc> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <frac>
  %40 = neuron.unary <frac> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <lgamma>
  %41 = neuron.unary <lgamma> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <digamma>
  %42 = neuron.unary <digamma> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <isnan>
  %43 = neuron.unary <isnan> %x : tensor<4xf32> -> tensor<4xi1>
  // CHECK: neuron.unary <isinf>
  %44 = neuron.unary <isinf> %x : tensor<4xf32> -> tensor<4xi1>
  // CHECK: neuron.unary <isfinite>
  %45 = neuron.unary <isfinite> %x : tensor<4xf32> -> tensor<4xi1>
  // CHECK: neuron.unary <signbit>
  %46 = neuron.unary <signbit> %x : tensor<4xf32> -> tensor<4xi1>
  // CHECK: neuron.unary <not>
  %47 = neuron.unary <not> %p : tensor<4xi1> -> tensor<4xi1>
  // CHECK: neuron.unary <sinc>
  %48 = neuron.unary <sinc> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <i0>
  %49 = neuron.unary <i0> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <i1>
  %50 = neuron.unary <i1> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <ndtri>
  %51 = neuron.unary <ndtri> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <log_ndtr>
  %52 = neuron.unary <log_ndtr> %x : tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.unary <copy>
  %53 = neuron.unary <copy> %x : tensor<4xf32> -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @binary_functions
func.func @binary_functions(%x: tensor<4xf32>, %n: tensor<4xi32>) {
  // CHECK: neuron.binary <add>
  %0 = neuron.binary <add> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <sub>
  %1 = neuron.binary <sub> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <mul>
  %2 = neuron.binary <mul> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <div>
  %3 = neuron.binary <div> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <floor_div>
  %4 = neuron.binary <floor_div> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <trunc_div>
  %5 = neuron.binary <trunc_div> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <remainder>
  %6 = neuron.binary <remainder> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <fmod>
  %7 = neuron.binary <fmod> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <pow>
  %8 = neuron.binary <pow> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <max>
  %9 = neuron.binary <max> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <min>
  %10 = neuron.binary <min> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <fmax>
  %11 = neuron.binary <fmax> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <fmin>
  %12 = neuron.binary <fmin> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <and>
  %13 = neuron.binary <and> %n, %n : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
  // CHECK: neuron.binary <or>
  %14 = neuron.binary <or> %n, %n : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
  // CHECK: neuron.binary <xor>
  %15 = neuron.binary <xor> %n, %n : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
  // CHECK: neuron.binary <shift_left>
  %16 = neuron.binary <shift_left> %n, %n : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
  // CHECK: neuron.binary <shift_right_arithmetic>
  %17 = neuron.binary <shift_right_arithmetic> %n, %n : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
  // CHECK: neuron.binary <shift_right_logical>
  %18 = neuron.binary <shift_right_logical> %n, %n : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
  // CHECK: neuron.binary <atan2>
  %19 = neuron.binary <atan2> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <hypot>
  %20 = neuron.binary <hypot> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <copysign>
  %21 = neuron.binary <copysign> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <nextafter>
  %22 = neuron.binary <nextafter> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <xlogy>
  %23 = neuron.binary <xlogy> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <xlog1py>
  %24 = neuron.binary <xlog1py> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <logaddexp>
  %25 = neuron.binary <logaddexp> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <logaddexp2>
  %26 = neuron.binary <logaddexp2> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // CHECK: neuron.binary <ldexp>
  %27 = neuron.binary <ldexp> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// CHECK-LABEL: func.func @compare_predicates
func.func @compare_predicates(%x: tensor<4xf32>) {
  // CHECK: neuron.compare <eq>
  %0 = neuron.compare <eq> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  // CHECK: neuron.compare <ne>
  %1 = neuron.compare <ne> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  // CHECK: neuron.compare <lt>
  %2 = neuron.compare <lt> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  // CHECK: neuron.compare <le>
  %3 = neuron.compare <le> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  // CHECK: neuron.compare <gt>
  %4 = neuron.compare <gt> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  // CHECK: neuron.compare <ge>
  %5 = neuron.compare <ge> %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @reduce_kinds
func.func @reduce_kinds(%n: tensor<4xi32>) {
  // CHECK: neuron.reduce <sum>
  %0 = neuron.reduce <sum> %n dims [0] : tensor<4xi32> -> tensor<1xi32>
  // CHECK: neuron.reduce <prod>
  %1 = neuron.reduce <prod> %n dims [0] : tensor<4xi32> -> tensor<1xi32>
  // CHECK: neuron.reduce <max>
  %2 = neuron.reduce <max> %n dims [0] : tensor<4xi32> -> tensor<1xi32>
  // CHECK: neuron.reduce <min>
  %3 = neuron.reduce <min> %n dims [0] : tensor<4xi32> -> tensor<1xi32>
  // CHECK: neuron.reduce <and>
  %4 = neuron.reduce <and> %n dims [0] : tensor<4xi32> -> tensor<1xi32>
  // CHECK: neuron.reduce <or>
  %5 = neuron.reduce <or> %n dims [0] : tensor<4xi32> -> tensor<1xi32>
  // CHECK: neuron.reduce <xor>
  %6 = neuron.reduce <xor> %n dims [0] : tensor<4xi32> -> tensor<1xi32>
  return
}

// CHECK-LABEL: func.func @memory_spaces
func.func @memory_spaces() {
  // CHECK: memref<1xf32, #neuron.space<hbm>>
  %0 = memref.alloc() : memref<1xf32, #neuron.space<hbm>>
  // CHECK: memref<1xf32, #neuron.space<sbuf>>
  %1 = memref.alloc() : memref<1xf32, #neuron.space<sbuf>>
  // CHECK: memref<1xf32, #neuron.space<psum>>
  %2 = memref.alloc() : memref<1xf32, #neuron.space<psum>>
  return
}
