// SPDX-License-Identifier: Apache-2.0
// Files of cells with valid checksums in which one value is not what kvbench writes. What is changed follows from the
// visit() of each struct, hence no member can be forgotten.
#include <cstdlib>
#include <limits>
#include <set>

#include <sys/resource.h>

#include <doctest/doctest.h>

#include <kvbench/sweep/cells_results.hpp>
#include <kvbench/sweep/collect.hpp>
#include <kvbench/sweep/merge.hpp>
#include <kvbench/sweep/visit.hpp>
#include <support/small_cells.hpp>
#include <unit/sweep/sweeps.hpp>

using namespace kvbench;
using namespace kvbench::sweep;
using namespace kvbench::testing;

namespace kvbench::store {  // in which visit() of an archive is found

/// Writes a value as store::ByteWriter does, with the fault number `chosen` of all that its parts can have.
class FaultyWriter {
 public:
  static constexpr bool reads = false;
  std::string bytes, fault;     ///< what was written, and what of it is wrong; "": there are fewer faults
  const void* where = nullptr;  ///< the value that the fault is in
  bool of_float = false;        ///< it is one of fp32, as metrics and errors are

  explicit FaultyWriter(std::size_t chosen) : left_(chosen) {}

  template <class... T>
  void operator()(T&... values) {
    (put(values), ...);
  }

 private:
  /// Whether the next fault of a value is the one.
  bool is_chosen(const void* value, std::string name) {
    if (!fault.empty() || left_-- > 0) return false;
    fault = std::move(name), where = value;
    return true;
  }
  template <Scalar T>
  void raw(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  template <Scalar T>
  static auto faults_of() {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_same_v<T, bool>) {
      return std::vector<std::uint8_t>{2, 255};
    } else if constexpr (std::is_enum_v<T>) {
      using Stored = std::underlying_type_t<T>;
      return std::vector<Stored>{static_cast<Stored>(enum_size<T>), Stored{1} << 30, static_cast<Stored>(-1)};
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::vector<T>{Limits::quiet_NaN(), -1, -Limits::infinity(), Limits::infinity()};
    } else if constexpr (std::is_signed_v<T>) {
      return std::vector<T>{-1, Limits::min(), Limits::max()};
    } else {
      return std::vector<T>{7, Limits::max() / 2 + 1, Limits::max()};
    }
  }
  template <Scalar T>
  void put(T& value) {
    for (const auto wrong : faults_of<T>()) {
      if (!is_chosen(&value, fmt::format("a number is {}", wrong))) continue;
      of_float = std::is_same_v<T, float>;
      return raw(wrong);
    }
    raw(value);
  }
  /// A number of items that the bytes do not hold; otherwise that of the items.
  void length(const void* value, std::size_t count) {
    for (const std::uint64_t wrong : {std::uint64_t{0}, count + std::uint64_t{1}, std::uint64_t{1} << 31,
                                      std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
      if (wrong != count && is_chosen(value, fmt::format("a length is {}", wrong))) return raw(wrong);
    }
    raw(std::uint64_t{count});
  }
  void put(std::string& text) {
    using namespace std::string_literals;
    std::string written = text;
    for (const std::string& wrong : {""s, "\x1b[2Ja"s, "\0"s, "\x7f"s, "\xff\xfe"s, "\xc0\xaf"s, "a\nb"s}) {
      if (wrong != text && is_chosen(&text, "a text is '" + wrong + "'")) written = wrong;
    }
    length(&text, written.size());
    bytes += written;
  }
  template <class T>
  void put(std::vector<T>& values) {
    std::vector<T> written = values;
    if (!values.empty()) {
      if (is_chosen(&values, "an item is missing")) written.erase(written.begin());
      if (is_chosen(&values, "an item is there twice")) written.insert(written.begin(), values.front());
    }
    if (values.size() > 1 && is_chosen(&values, "items are exchanged")) std::swap(written[0], written[1]);
    length(&values, written.size());
    for (T& value : fault.empty() ? values : written) put(value);
  }
  template <class T>
  void put(T& value) {
    visit(*this, value);
  }

  std::size_t left_;
};

}  // namespace kvbench::store

namespace {

using store::FaultyWriter;

/// The frames of a file of cells as values.
struct Parts {
  SweepLayout layout = testing::small_layout();
  CellBlock block = testing::small_block();
  std::vector<measures::MeasureRow> measures = testing::small_measures();

  Parts() {
    for (auto& results : block) {
      for (replay::ConfigurationResult& result : results) result.probe_sums = {0.5};
    }
  }
};

struct FrameBytes {
  std::uint32_t kind = 0;
  std::string key, bytes;
};
std::vector<FrameBytes> frames_of(Parts parts) {
  const StepLayout& step = parts.layout.steps[0];
  return {{1, std::string(64, '0'), encode_layout(parts.layout)},
          {2, step.cells[0].key, encode_cells(parts.block)},
          {3, step.measures[0].key, encode_measures(parts.measures)}};
}

/// What merge says of the file c.cells of these frames: a refusal, or "" and the rows. compare, which reads one cell of
/// it, refuses no other file.
std::string refusal(const std::vector<FrameBytes>& frames, SweepResults* rows = nullptr) {
  const TempFolder folder;
  const std::string path = folder / "c.cells";
  {
    FrameFile file(path, FrameFile::Mode::overwrite);
    for (const FrameBytes& frame : frames) file.append(frame.kind, frame.key, frame.bytes);
  }
  std::string said = message_of<Error>([&] {
    const Merged merged = open_shards({path});
    SweepResults results = collect(merged.layout, merged.files, replay::Grain::query);
    if (!missing_cells(merged.layout, merged.files).empty()) throw Error("{}: cells are missing", path);
    if (rows != nullptr) *rows = std::move(results);
  });
  const std::string compared = message_of<Error>([&] { CellsResults(path, replay::Metric::rel_err).read(0, 0); });
  CHECK((compared.empty() || !said.empty()));
  return said.substr(said.starts_with(path) ? path.size() - std::string("c.cells").size() : 0);
}

/// Whether a file with this fault may be read: the value is one that some sweep has, or nothing depends on it.
bool is_harmless(const Parts& parts, const FaultyWriter& writer) {
  const StepLayout& step = parts.layout.steps[0];
  const compare::Relation& relation = parts.layout.claims[0].relations[0];
  std::set<const void*> any = {&step.frame.configurations[0].seed, &step.frame.configurations[1].seed, &relation.number,
                               &parts.measures[0].value, &parts.measures[0].trace};
  std::set<const void*> large = {&parts.measures[0].count};
  std::set<const void*> messages;
  for (const auto* heads : {&step.heads, &step.measured}) {
    for (const replay::HeadResult& head : *heads) {
      large.insert(&head.place.layer);
      if (!head.positions.empty()) large.insert(&head.positions.back());
    }
  }
  for (const auto& results : parts.block) {
    for (const replay::ConfigurationResult& result : results) {
      large.insert(&result.budget_tokens), any.insert(&result.probe_sums[0]);
      messages.insert({&result.reason, &result.notes[0].text});
    }
  }
  const auto is = [&](std::string_view fault) { return writer.fault.starts_with(fault); };
  // Tables of what must be refused among these follow below, and in check_cells.cpp.
  if (is("an item") || is("items are exchanged") || writer.fault == "a text is ''") return true;
  if (is("a text is 'a\n")) return messages.contains(writer.where) || any.contains(writer.where);
  if (is("a number is nan") || is("a number is inf")) return writer.of_float || any.contains(writer.where);
  if (large.contains(writer.where)) return !is("a number is -");
  return any.contains(writer.where) && !is("a length");
}

}  // namespace

TEST_CASE("a file in which any one value has a fault is refused by a sentence that names it") {
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  const rlimit few{rlim_t{3} << 30, before.rlim_max};  // a length must not decide how much memory is allocated
  if (std::getenv("KVBENCH_SANITIZE") == nullptr) ::setrlimit(RLIMIT_AS, &few);
  Parts parts;
  const std::vector<FrameBytes> whole = frames_of(parts);
  std::size_t refused = 0;
  for (std::size_t kind = 0; kind < whole.size(); ++kind) {
    for (std::size_t chosen = 0;; ++chosen) {
      FaultyWriter writer(chosen);
      kind == 0 ? writer(parts.layout) : kind == 1 ? writer(parts.block) : writer(parts.measures);
      if (writer.fault.empty()) {
        CHECK(writer.bytes == whole[kind].bytes);
        break;
      }
      CAPTURE(kind);
      CAPTURE(chosen);
      CAPTURE(writer.fault);
      std::vector<FrameBytes> frames = whole;
      frames[kind].bytes = writer.bytes;
      const std::string said = refusal(frames);
      if (is_harmless(parts, writer)) continue;
      ++refused;
      CHECK_MESSAGE(said.starts_with("c.cells: "), said);
      CHECK(said.find_first_of("\n\x1b") == std::string::npos);
    }
  }
  ::setrlimit(RLIMIT_AS, &before);
  CHECK(refused > 900);
}

TEST_CASE("frames in any order, repeated, or of a later version give the same rows") {
  const std::vector<FrameBytes> frames = frames_of({});
  const FrameBytes &layout = frames[0], &cells = frames[1], &measures = frames[2];
  Parts other;
  other.layout.version = "0.0.1";
  FrameBytes old = frames_of(other)[0];
  old.key = std::string(64, '1');
  SweepResults expected;
  REQUIRE(refusal(frames, &expected).empty());
  for (const std::vector<FrameBytes>& same : std::initializer_list<std::vector<FrameBytes>>{
           {measures, cells, layout},
           {layout, layout, cells, measures, measures, cells},
           {layout, cells, measures, {99, std::string(64, 'f'), "of a later version"}},
           {old, layout, cells, measures}}) {  // the last layout counts
    SweepResults found;
    CHECK(refusal(same, &found).empty());
    testing::check_same(found, expected);
  }
  CHECK(contains(refusal({layout, cells, measures, old}), "its cells are of kvbench 0.0.1 ("));
  CHECK(contains(refusal({cells, measures}), "has no cells of a sweep"));
  CHECK(contains(refusal({layout}), "missing"));
  CHECK(contains(refusal({layout, cells}), "missing"));
  CHECK(contains(refusal({layout, cells, {2, measures.key, measures.bytes}}), "of another kind"));
  CHECK(contains(refusal({layout, {3, cells.key, cells.bytes}, measures}), "of another kind"));
  CHECK(contains(refusal({layout, {2, cells.key, ""}, measures}), "is cut off"));
  CHECK(contains(refusal({layout, cells, {3, measures.key, measures.bytes + '\0'}}), "cannot read"));
}
