// SPDX-License-Identifier: Apache-2.0
// What an error of the attention output adds to the residual stream, behind a random projection (docs/damage.md).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <apps/llama/layer_capture.hpp>
#include <apps/llama/residual_path.hpp>

namespace kvbench::kvdump {

inline constexpr std::int64_t sketch_columns = 64;  // the norm of one vector within 9 %

/// The sketch of a layer. Where a norm follows W_O, the map is another one at each query: that of the mean of these
/// maps, each divided by its norm.
struct Sketch {
  std::vector<float> matrix;  ///< [query_heads, dv, sketch_columns]; empty: none
  double misfit = 0;          ///< as trace::OutputSketch::misfit
  double norm = 0;            ///< of the matrix (Frobenius), where a norm follows W_O
};

class Sketches {
 public:
  explicit Sketches(std::uint32_t seed) : seed_(seed) {}

  /// Makes the sketch of the layer from its first prompt, and divides the residual norms of each prompt by the gain of
  /// the query relative to the sketch. Where the path of the layer is not known, or a norm on it has no slope, there is
  /// no sketch, and the norms are removed. Needs layer.output.
  void add(llama::LayerCapture& layer, const llama::ResidualPath& path);

  /// That of a layer; one without a matrix where it has none.
  const Sketch& of(int layer) const {
    static const Sketch none;
    const auto found = sketches_.find(layer);
    return found == sketches_.end() ? none : found->second;
  }

 private:
  std::uint32_t seed_;
  std::map<int, Sketch> sketches_;
};

}  // namespace kvbench::kvdump
