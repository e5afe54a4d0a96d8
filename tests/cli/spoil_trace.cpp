// SPDX-License-Identifier: Apache-2.0
// spoil_trace FILE HOW: makes a good trace bad in one way that only the HDF5 library can.
#include <cstdio>
#include <functional>
#include <limits>
#include <map>

#include "unit/trace/raw.hpp"

using kvbench::trace::test::RawFile;

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(RawFile&)>> ways = {
      {"newer-schema", [](RawFile& f) { f.set("/", "kvbench_trace", std::string("2.0")); }},
      {"not-a-trace", [](RawFile& f) { f.remove_attribute("/", "kvbench_trace"); }},
      {"no-heads", [](RawFile& f) { f.set("/", "num_kv_heads", std::int64_t{0}); }},
      {"wrong-heads", [](RawFile& f) { f.set("/", "num_query_heads", std::int64_t{3}); }},
      {"no-keys", [](RawFile& f) { f.remove("/prompts/0/layers/0/keys"); }},
      {"wrong-shape",
       [](RawFile& f) {
         const std::vector<float> zeros(2 * 8 * 5);
         f.replace("/prompts/0/layers/0/values", H5T_IEEE_F32LE, {2, 8, 5}, zeros.data());
       }},
      {"no-queries",
       [](RawFile& f) {
         f.replace("/prompts/0/layers/0/queries", H5T_IEEE_F32LE, {4, 0, 16}, nullptr);
         f.replace("/prompts/0/layers/0/query_positions", H5T_STD_I64LE, {0}, nullptr);
       }},
      {"no-prompts", [](RawFile& f) { f.remove("/prompts/0"); }},
  };
  const auto way = argc == 3 ? ways.find(argv[2]) : ways.end();
  if (way == ways.end()) {
    std::fprintf(stderr, "usage: spoil_trace FILE HOW\n");
    return 2;
  }
  RawFile file(argv[1]);
  if (file.id() < 0) return 1;
  way->second(file);
  return 0;
}
