// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: for any bytes the reader returns a trace or throws Error or IoError.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include <kvbench/core/error.hpp>
#include <kvbench/trace/layout.hpp>
#include <kvbench/trace/reader.hpp>

#include "scratch.hpp"

std::size_t inputs_read =
    0;  // number of valid inputs, which replay.cpp prints, so that a target that reads none is detected

namespace {

using namespace kvbench;

void read_everything(const std::string& path) {
  const trace::Reader reader(path);
  for (const trace::PromptInfo& prompt : reader.info().prompts) {
    for (const trace::LayerInfo& layer : prompt.layers) {
      for (const trace::Array array : trace::all_arrays) {
        if (!trace::holds(layer, array)) continue;
        const trace::Shape shape = trace::shape_of(reader.info(), prompt, layer, array);
        for (std::int64_t head = 0; head < shape.heads; ++head) reader.read_head(prompt, layer, array, head);
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::ScratchFile file(data, size);  // named, because HDF5 resolves the path
  try {
    read_everything(fuzz::scratch());
    ++inputs_read;
  } catch (const Error&) {
  } catch (const IoError&) {
  }
  return 0;
}

/// Mutates in place: moved bytes would invalidate every address in an HDF5 file, so that only the first checks would be
/// tested.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t, unsigned int seed) {
  std::minstd_rand random(seed);
  if (size < 16) return size;
  for (unsigned changes = 1 + random() % 4; changes > 0; --changes) {
    std::size_t at = 0;
    for (int tries = 0; tries < 16 && data[at = random() % (size - 8)] == 0; ++tries)
      continue;  // most zeros are padding
    const std::uint64_t words[] = {0, 1, ~std::uint64_t{0}, size, std::uint64_t{1} << random() % 64, random() % size};
    switch (random() % 4) {
      case 0:
        data[at] ^= static_cast<std::uint8_t>(1U << random() % 8);
        break;
      case 1:
        data[at] = static_cast<std::uint8_t>(random());
        break;
      case 2:
        std::memcpy(data + at, &words[random() % 6], std::size_t{1} << random() % 4);
        break;
      default:
        std::memmove(data + at, data + random() % (size - 8), 1 + random() % 8);
        break;
    }
  }
  return size;
}
