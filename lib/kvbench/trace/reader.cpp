// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/reader.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>

#include <kvbench/core/error.hpp>
#include <kvbench/trace/layout.hpp>
#include <kvbench/trace/parse.hpp>
#include <kvbench/trace/sha256.hpp>
#include <kvbench/trace/untrusted_file.hpp>

namespace kvbench::trace {
namespace {

/// Index of the first value that is NaN or infinite, or -1. The inner loop has no branch, so that it vectorises.
std::ptrdiff_t find_not_finite(const std::vector<float>& values) {
  constexpr std::size_t block = 4096;
  const auto bad = [](float value) { return (bits_of(value) & 0x7f800000U) == 0x7f800000U; };
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const std::size_t end = std::min(values.size(), begin + block);
    unsigned any = 0;
    for (std::size_t i = begin; i < end; ++i) any |= static_cast<unsigned>(bad(values[i]));
    if (any != 0) return std::find_if(values.begin() + static_cast<std::ptrdiff_t>(begin), values.end(), bad) - values.begin();
  }
  return -1;
}

/// Widens 16-bit values that fill the second half of `values` to all of it, in place: a head's slab is held once. A value
/// is written where only values before it were read, and those are widened already.
void widen_all(std::vector<float>& values, Dtype dtype) {
  constexpr std::size_t block = 1024;
  std::array<std::uint16_t, block> halves;
  const auto* stored = reinterpret_cast<const std::byte*>(values.data()) + 2 * values.size();
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const std::size_t count = std::min(block, values.size() - begin);
    std::memcpy(halves.data(), stored + 2 * begin, 2 * count);
    float* out = values.data() + begin;
    if (dtype == Dtype::f16) {
      std::transform(halves.begin(), halves.begin() + count, out, [](std::uint16_t half) { return widen_f16(half); });
    } else {
      std::transform(halves.begin(), halves.begin() + count, out, [](std::uint16_t half) { return widen_bf16(half); });
    }
  }
}

}  // namespace

struct Reader::Impl {
  std::string path;
  TraceInfo info;
  std::optional<h5::Object> file;
  std::mutex sha_mutex;
  std::string sha;

  explicit Impl(std::string name) : path(std::move(name)) {
    const std::uint64_t length = check_superblock(path);
    const h5::Session session;
#if !defined(FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION)
    try_in_child(path, [&] { parse(h5::Object::open_file(path), path, length); });
#endif
    try {
      h5::Object opened = h5::Object::open_file(path);
      info = parse(opened, path, length);
      file = std::move(opened);
    } catch (const h5::Failure& failure) {
      throw Error("{}. The file is damaged or no trace; see docs/traces.md.", failure.what());
    } catch (const std::bad_alloc&) {
      throw Error("{}: its description does not fit into memory; it is damaged.", path);
    }
  }
  ~Impl() {
    const h5::Session session;
    file.reset();
  }
};

Reader::Reader(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

const std::string& Reader::path() const { return impl_->path; }
const TraceInfo& Reader::info() const { return impl_->info; }

std::vector<float> Reader::read_head(const PromptInfo& prompt, const LayerInfo& layer, Array array, std::int64_t head) const {
  const std::string at = path_of(prompt, layer, array);
  const Shape shape = shape_of(impl_->info, prompt, layer, array);
  if (!holds(layer, array)) throw Error("{}: {}: the trace does not hold this array.", impl_->path, at);
  if (head < 0 || head >= shape.heads) throw Error("{}: {}: there is no head {} of {}.", impl_->path, at, head, shape.heads);
  const Dtype dtype = dtype_of(impl_->info, array);
  const auto size = static_cast<std::size_t>(shape.rows * shape.dim);
  std::vector<float> values(size);
  try {
    const h5::Session session;
    std::vector<hsize_t> start{static_cast<hsize_t>(head), 0, 0};
    std::vector<hsize_t> count{1, static_cast<hsize_t>(shape.rows), static_cast<hsize_t>(shape.dim)};
    start.resize(static_cast<std::size_t>(rank_of(array)));
    count.resize(static_cast<std::size_t>(rank_of(array)));
    const h5::Object dataset = impl_->file->group("prompts")
                                   .group(prompt.id)
                                   .group("layers")
                                   .group(std::to_string(layer.layer))
                                   .dataset(name_of(array));
    std::byte* const out = reinterpret_cast<std::byte*>(values.data()) + (sizeof(float) - size_of(dtype)) * size;
    dataset.read_slab(h5::float_type(dtype).get(), start, count, out);
  } catch (const h5::Failure& failure) {
    throw IoError("{}. Check the disk, or write the trace again.", failure.what());
  }
  if (dtype != Dtype::f32) widen_all(values, dtype);
  if (const std::ptrdiff_t bad = find_not_finite(values); bad >= 0) {
    throw Error("{}: {}: head {}, row {}, column {} is {}; a trace must be finite.", impl_->path, at, head, bad / shape.dim,
                bad % shape.dim, values[static_cast<std::size_t>(bad)]);
  }
  return values;
}

const std::string& Reader::sha256() const {
  const std::lock_guard<std::mutex> lock(impl_->sha_mutex);
  if (impl_->sha.empty()) impl_->sha = stated_sha256(impl_->path);
  if (impl_->sha.empty()) impl_->sha = sha256_of_file(impl_->path);
  return impl_->sha;
}

}  // namespace kvbench::trace
