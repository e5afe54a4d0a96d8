// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/reader.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <mutex>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>
#include <kvbench/trace/float_type.hpp>
#include <kvbench/trace/guard/input_file.hpp>
#include <kvbench/trace/layout.hpp>
#include <kvbench/trace/parse.hpp>
#include <kvbench/trace/sha256.hpp>
#include <kvbench/trace/slab.hpp>

namespace kvbench::trace {
namespace {

/// Index of the first value that is NaN or infinite, or -1. The inner loop has no branch, so that it is vectorised.
std::ptrdiff_t find_not_finite(const std::vector<float>& values) {
  constexpr std::size_t block = 4096;
  const auto bad = [](float value) { return (bits_of(value) & 0x7f800000U) == 0x7f800000U; };
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const std::size_t end = std::min(values.size(), begin + block);
    unsigned any = 0;
    for (std::size_t i = begin; i < end; ++i) any |= static_cast<unsigned>(bad(values[i]));
    if (any != 0)
      return std::find_if(values.begin() + static_cast<std::ptrdiff_t>(begin), values.end(), bad) - values.begin();
  }
  return -1;
}

/// Widens the words of type T at the end of `values` to fp32 in place, so that the slab of a head is stored once. No
/// value is overwritten before it is widened.
template <class T, class F>
void widen_all(std::vector<float>& values, F widen) {
  constexpr std::size_t block = 1024;
  std::array<T, block> words;
  const auto* stored = reinterpret_cast<const std::byte*>(values.data()) + (sizeof(float) - sizeof(T)) * values.size();
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const std::size_t count = std::min(block, values.size() - begin);
    std::memcpy(words.data(), stored + sizeof(T) * begin, sizeof(T) * count);
    std::transform(words.begin(), words.begin() + count, values.data() + begin, widen);
  }
}

void widen_all(std::vector<float>& values, Dtype dtype) {
  if (dtype == Dtype::f16) widen_all<std::uint16_t>(values, [](std::uint16_t half) { return widen_f16(half); });
  if (dtype == Dtype::bf16) widen_all<std::uint16_t>(values, [](std::uint16_t half) { return widen_bf16(half); });
  if (dtype == Dtype::i8) widen_all<std::int8_t>(values, [](std::int8_t byte) { return static_cast<float>(byte); });
}

/// The first `count` columns of rows of `cols`.
std::vector<float> first_columns(const std::vector<float>& rows, std::int64_t cols, std::int64_t count) {
  std::vector<float> out;
  out.reserve(rows.size() / static_cast<std::size_t>(cols) * static_cast<std::size_t>(count));
  for (auto row = rows.begin(); row != rows.end(); row += cols) out.insert(out.end(), row, row + count);
  return out;
}

/// What is wrong where the least value of an array is this; "" where nothing is.
const char* complaint_of(Array array, float least) {
  if (array == Array::column_sums && least < 0) return "a sum of attention weights is not negative";
  if (array == Array::residual_norm && !(least > 0)) return "the norm of a residual stream is above 0";
  return array == Array::probe_scales && least < 0 ? "a scale is not negative" : "";
}

}  // namespace

struct Reader::Impl {
  TraceInfo info;
  InputFile file;
  std::mutex sha_mutex;
  std::string sha;

  explicit Impl(const std::string& path)
      : file(path, "a trace", "docs/traces.md", [&](const h5::InputObject& root) { info = parse(root, path); }) {
    check_name(std::filesystem::path(path).filename().string(), "The name of the file " + path);
  }
};

Reader::Reader(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

const std::string& Reader::path() const { return impl_->file.path(); }
const TraceInfo& Reader::info() const { return impl_->info; }

std::vector<float> Reader::read_head(const PromptInfo& prompt, const LayerInfo& layer, Array array,
                                     std::int64_t head) const {
  if (array == Array::values && layer.values_in_keys)
    return first_columns(read_head(prompt, layer, Array::keys, head), impl_->info.head_dim, impl_->info.value_dim);
  const std::string at = path_of(prompt, layer, array);
  const Shape shape = shape_of(impl_->info, prompt, layer, array);
  if (!holds(layer, array)) throw Error("{}: {}: the trace does not hold this array.", path(), at);
  if (head < 0 || head >= shape.heads) throw Error("{}: {}: there is no head {} of {}.", path(), at, head, shape.heads);
  const Dtype dtype = dtype_of(impl_->info, array);
  const auto size = static_cast<std::size_t>(shape.rows * shape.dim);
  const Slab place = slab_of(dims_of(impl_->info, prompt, layer, array), shape, head, 0, shape.rows);
  std::vector<float> values = impl_->file.read([&](const h5::InputObject& root) {
    std::vector<float> slab(size);
    std::byte* const out = reinterpret_cast<std::byte*>(slab.data()) + (sizeof(float) - size_of(dtype)) * size;
    const h5::InputObject layers = root.group("prompts").group(prompt.id).group("layers");
    layers.group(std::to_string(layer.layer))
        .dataset(name_of(array), h5::Extent::part)
        .read_slab(h5::element_type(dtype).get(), place.start, place.count, out);
    return slab;
  });
  if (dtype != Dtype::f32) widen_all(values, dtype);
  if (const std::ptrdiff_t bad = find_not_finite(values); bad >= 0) {
    throw Error("{}: {}: head {}, row {}, column {} is {}; a trace must be finite.", path(), at, head, bad / shape.dim,
                bad % shape.dim, values[static_cast<std::size_t>(bad)]);
  }
  const auto least = std::ranges::min_element(values);
  if (const std::string wrong = least == values.end() ? "" : complaint_of(array, *least); !wrong.empty())
    throw Error("{}: {}: head {}, entry {} is {}; {}.", path(), at, head, least - values.begin(), *least, wrong);
  if (array != Array::probes) return values;
  const std::vector<float> scales = read_head(prompt, layer, Array::probe_scales, head);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= scales[i / static_cast<std::size_t>(shape.dim)];
  return values;
}

const std::string& Reader::sha256() const {
  const std::lock_guard<std::mutex> lock(impl_->sha_mutex);
  if (!impl_->sha.empty()) return impl_->sha;
  impl_->file.check_unchanged();
  std::string sum = stated_sha256(path());
  if (sum.empty()) sum = sha256_of_file(path());
  impl_->file.check_unchanged();
  impl_->sha = std::move(sum);
  return impl_->sha;
}

}  // namespace kvbench::trace
