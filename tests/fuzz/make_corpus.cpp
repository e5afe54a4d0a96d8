// SPDX-License-Identifier: Apache-2.0
// make_corpus FOLDER: writes small valid traces as seeds for the fuzzer, with and without the checksums of newer HDF5 formats.
#include <filesystem>
#include <string>
#include <vector>

#include <kvbench/trace/create.hpp>
#include <kvbench/trace/writer.hpp>

#include "unit/trace/sample.hpp"

namespace {

using namespace kvbench::trace;

/// h5py writes the oldest format that supports the content.
void write_old_format(const std::string& path, const TraceInfo& info, bool compress) {
  const h5::Session session;
  h5::Object file = create(path, path, info, compress, H5F_LIBVER_EARLIEST);
  test::for_each_head(info, [&](std::size_t p, std::size_t l, Array array, std::int64_t head, const Shape& shape) {
    const PromptInfo& prompt = info.prompts[p];
    const std::vector<float> slab = test::sample_slab(shape, p, l, array, head);
    std::vector<hsize_t> start{static_cast<hsize_t>(head), 0, 0};
    std::vector<hsize_t> count{1, static_cast<hsize_t>(shape.rows), static_cast<hsize_t>(shape.dim)};
    start.resize(static_cast<std::size_t>(rank_of(array)));
    count.resize(static_cast<std::size_t>(rank_of(array)));
    file.group("prompts")
        .group(prompt.id)
        .group("layers")
        .group(std::to_string(prompt.layers[l].layer))
        .dataset(name_of(array))
        .write_slab(H5T_NATIVE_FLOAT, start, count, slab.data());
  });
  file.close();
}

/// As small as possible, because the speed of fuzzing depends on the size.
TraceInfo tiny(TraceInfo info) {
  info.prompts.erase(info.prompts.begin());
  info.prompts[0].layers.erase(info.prompts[0].layers.begin());
  return info;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
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
