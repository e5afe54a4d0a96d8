// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/float_type.hpp>

namespace kvbench::trace::h5 {

Handle element_type(Dtype dtype) {
  Handle type(H5Tcopy(dtype == Dtype::i8 ? H5T_STD_I8LE : H5T_IEEE_F32LE), &H5Tclose);
  if (dtype == Dtype::i8) return type;
  if (dtype == Dtype::f32) return type;
  const bool half = dtype == Dtype::f16;
  const std::size_t exponent = half ? 5 : 8, mantissa = half ? 10 : 7;
  H5Tset_fields(type.get(), 15, mantissa, exponent, 0, mantissa);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), half ? 15 : 127);
  return type;
}

}  // namespace kvbench::trace::h5
