// SPDX-License-Identifier: Apache-2.0
#include <kvbench/measures/measures.hpp>

#include <atomic>
#include <filesystem>

#include <kvbench/core/error.hpp>
#include <kvbench/measures/curves.hpp>

namespace kvbench::measures {
namespace {

using trace::Array;

constexpr Index measured_centres = 64;     // SubGen's Fig. 1 shows 16
constexpr Index measured_distances = 255;  // Chelsea: "the local region as 256 tokens"

/// The arrays of one head on the host.
struct HeadArrays {
  Index n, d, dv;
  std::vector<float> keys, values;
};

/// Rows (keys[i], values[i]).
std::vector<float> join(const HeadArrays& head) {
  std::vector<float> rows;
  rows.reserve(head.keys.size() + head.values.size());
  for (Index i = 0; i < head.n; ++i) {
    rows.insert(rows.end(), head.keys.begin() + i * head.d, head.keys.begin() + (i + 1) * head.d);
    rows.insert(rows.end(), head.values.begin() + i * head.dv, head.values.begin() + (i + 1) * head.dv);
  }
  return rows;
}

class HeadMeasures {
 public:
  HeadMeasures(const HeadArrays& head, MeasureRow identity, Backend& backend)
      : head_(head), row_(std::move(identity)), backend_(backend) {}

  void add(Measure measure) {
    row_.measure = measure;
    switch (measure) {
      case Measure::clusterability:
        clusters("keys", head_.keys, head_.d);
        clusters("values", head_.values, head_.dv);
        clusters("both", join(head_), head_.d + head_.dv);
        return;
      case Measure::similarity_by_distance:
        const auto means = similarity_by_distance(backend_.adopt(std::vector(head_.keys), head_.n, head_.d),
                                                  measured_distances, backend_);
        add_curve("keys", means, [&](Index distance) { return head_.n - distance; });
        return;
    }
  }

  std::vector<MeasureRow> rows;

 private:
  void clusters(const char* array, std::vector<float> points, Index cols) {
    add_curve(array, clusterability(backend_.adopt(std::move(points), head_.n, cols), measured_centres, backend_),
              [&](Index) { return head_.n; });
  }

  template <class Count>
  void add_curve(const char* array, const std::vector<double>& values, Count count) {
    row_.array = array;
    for (std::size_t i = 0; i < values.size(); ++i) {
      row_.x = static_cast<Index>(i) + 1;
      row_.value = values[i];
      row_.count = count(row_.x);
      rows.push_back(row_);
    }
  }

  const HeadArrays& head_;
  MeasureRow row_;
  Backend& backend_;
};

}  // namespace

const std::map<std::string, Measure>& names() {
  static const std::map<std::string, Measure> table = {{"clusterability", Measure::clusterability},
                                                       {"similarity-by-distance", Measure::similarity_by_distance}};
  return table;
}

std::string_view name_of(Measure measure) {
  for (const auto& [name, value] : names()) {
    if (value == measure) return name;
  }
  return "";
}

std::vector<MeasureRow> measure_head(const trace::Reader& reader, const replay::HeadPlace& place,
                                     const std::vector<Measure>& wanted, Backend& backend,
                                     const std::atomic<bool>* stop) {
  const trace::TraceInfo& info = reader.info();
  const trace::PromptInfo& prompt = info.prompts[place.prompt];
  const trace::LayerInfo& layer = prompt.layers[place.layer];
  const HeadArrays arrays{prompt.num_tokens, info.head_dim, info.value_dim,
                          reader.read_head(prompt, layer, Array::keys, place.kv_head),
                          reader.read_head(prompt, layer, Array::values, place.kv_head)};
  HeadMeasures head(arrays,
                    {.trace = std::filesystem::path(reader.path()).filename().string(),
                     .sha256 = reader.sha256().substr(0, 12),
                     .model = info.model,
                     .prompt = prompt.id,
                     .layer = layer.layer,
                     .kv_head = place.kv_head},
                    backend);
  for (const Measure measure : wanted) {
    if (stop != nullptr && stop->load()) throw Interrupted();
    head.add(measure);
  }
  return std::move(head.rows);
}

}  // namespace kvbench::measures
