// SPDX-License-Identifier: Apache-2.0
// make_corpus FOLDER: writes small valid inputs as seeds for the fuzzers, one folder for each; traces with and without
// the checksums of newer HDF5 formats.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <kvbench/config/sweep.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/sweep/collect.hpp>
#include <kvbench/sweep/merge.hpp>
#include <kvbench/trace/create.hpp>
#include <kvbench/trace/slab.hpp>
#include <kvbench/trace/writer.hpp>

#include <support/small_cells.hpp>
#include <unit/trace/sample.hpp>

namespace {

using namespace kvbench;
using namespace kvbench::evidence;
using namespace kvbench::eval;
using namespace kvbench::replay;
using namespace kvbench::report;
using namespace kvbench::trace;

/// h5py writes the oldest format that supports the content.
void write_old_format(const std::string& path, const TraceInfo& info, bool compress) {
  const h5::Session session;
  h5::Object file = create(path, path, info, compress, H5F_LIBVER_EARLIEST);
  test::for_each_head(info, [&](std::size_t p, std::size_t l, Array array, std::int64_t head, const Shape& shape) {
    const PromptInfo& prompt = info.prompts[p];
    const std::vector<float> slab = test::sample_slab(shape, p, l, array, head);
    const Slab place = slab_of(dims_of(info, prompt, prompt.layers[l], array), shape, head, 0, shape.rows);
    file.group("prompts")
        .group(prompt.id)
        .group("layers")
        .group(std::to_string(prompt.layers[l].layer))
        .dataset(name_of(array))
        .write_slab(H5T_NATIVE_FLOAT, place.start, place.count, slab.data());
  });
  file.close();
}

/// As small as possible, because the speed of fuzzing depends on the size.
TraceInfo tiny(TraceInfo info) {
  info.prompts.erase(info.prompts.begin());
  info.prompts[0].layers.erase(info.prompts[0].layers.begin());
  return info;
}

void write_traces(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const bool compress : {false, true}) {
    const std::string kind = compress ? "packed" : "plain";
    for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
      const TraceInfo info = test::sample_info(dtype);
      const std::string name = std::string(name_of(dtype)) + "-" + kind + ".h5";
      test::write_sample(folder / ("new-" + name), tiny(info), compress);
      write_old_format(folder / ("old-" + name), tiny(info), compress);
      write_old_format(folder / ("full-" + name), info, compress);
    }
  }
}

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

/// In the form of cells_fuzz.cpp.
std::string cells_input(const sweep::SweepLayout& layout, const sweep::CellBlock& block) {
  const std::string parts[] = {sweep::encode_layout(layout), sweep::encode_cells(block),
                               sweep::encode_measures(testing::small_measures())};
  const std::uint32_t lengths[] = {static_cast<std::uint32_t>(parts[0].size()),
                                   static_cast<std::uint32_t>(parts[1].size())};
  return std::string(reinterpret_cast<const char*>(lengths), sizeof lengths) + parts[0] + parts[1] + parts[2];
}

/// The small layout with a second method, and with seeds.
sweep::SweepLayout seeded_layout() {
  sweep::SweepLayout layout = testing::small_layout();
  sweep::StepLayout& step = layout.steps[0];
  step.frame.methods = {{"subgen", "t=4", true}, {"uniform", "", true}};
  step.frame.configurations = {{0, 0, 1}, {0, 0, 2}, {1, 0, 1}, {1, 0, 2}};
  step.cells.push_back({std::string(64, 'c'), 1, {0, 1}});
  layout.claims[0].relations = {{.a = "subgen", .b = "uniform"}};
  return layout;
}

/// A small sweep, and one with two steps and cells that were skipped.
void write_cells(const std::filesystem::path& folder) {
  sweep::CellBlock block = testing::small_block();
  write(folder / "small", cells_input(testing::small_layout(), block));
  sweep::SweepLayout layout = seeded_layout();
  layout.steps.push_back(layout.steps[0]);
  layout.steps[1].run = "b";
  block[1][0].status = Status::skipped;
  write(folder / "seeds", cells_input(layout, block));
}

/// Two methods on two documents, with all injections and one layer.
std::vector<EvalRecord> evaluations() {
  std::vector<EvalRecord> records;
  for (const char* document : {"all", "text-0", "text-1"}) {
    for (const char* method : {"sink", "h2o"}) {
      for (const Inject mode : {Inject::all, Inject::one, Inject::none}) {
        EvalRecord r;
        r.model = "m.gguf", r.task = "text", r.document = document, r.method = method;
        r.budget = Budget::parse("25%mem");
        r.injection = {mode, mode == Inject::one ? 3 : -1};
        if (r.document != "all") r.document_sha256 = r.document;
        r.settings.layers = "0-2,5", r.settings.model_layers = 6, r.compressed_layers = 4;
        r.bytes = {.kv = 10, .meta = 0, .full = 40};
        r.of(damage("kl_mean")) = {0.5, 0.25, 1}, r.metrics[Metric::rel_err] = method[0] == 's' ? 0.25 : 0.5;
        records.push_back(r);
        r.layer = 3, r.drift = 0.5, r.residual = 0.25;
        records.push_back(r);
      }
    }
  }
  return records;
}

/// Every kind of table, as made from a file of cells.
void write_tables(const std::filesystem::path& folder) {
  const std::string cells = folder / "cells";
  std::filesystem::create_directories(folder);
  std::filesystem::remove(cells);
  testing::write_cells(cells, seeded_layout(), testing::small_block());
  const sweep::Merged merged = sweep::open_shards({cells});
  std::filesystem::remove(cells);
  for (const auto& [name, grain] : {std::pair("trace", Grain::trace), std::pair("query", Grain::query)}) {
    const sweep::SweepResults results = sweep::collect(merged.layout, merged.files, grain);
    write(folder / name, csv_of(record_columns(), results.records));
    write(folder / "claims", claims_table("csv", results.claims));
    write(folder / "measures", csv_of(measure_columns(), results.measures));
  }
  write(folder / "checks",
        csv_of(check_columns(), std::vector<CheckRow>{{.check = "subgen.lemma1", .part = "t=4", .source = "t.h5"}}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  write_traces(folder / "reader");
  write_cells(folder / "cells");
  write_tables(folder / "csv");
  for (const char* target : {"csv", "eval"})
    write(folder / target / "evaluations", csv_of(eval_columns(), evaluations()));
  write(folder / "toml" / "example", config::example_sweep());
  std::size_t names = 0;
  for (const char* name : {"snapkv", "snapkv+q5_1", "adakv(snapkv)+int8", "snapkv[window=32,kernel=5]", "h2o(per=head)",
                           "plan:a/p.toml", "adakv(scores:s.h5)", "scores:s.h5+int8", "a+b.py:Mine{a=1}", "py:Mine@3"})
    write(folder / "name" / std::to_string(names++), name);
  // Tables inside each other, more than a recursion has stack for.
  std::string nested = "a";
  for (int i = 0; i < 15000; ++i) nested += ".a";
  write(folder / "toml" / "nested_keys", nested + " = 1\n");
  write(folder / "toml" / "nested_tables", "[" + nested + "]\n");
}
