// SPDX-License-Identifier: Apache-2.0
// kvdump: runs a GGUF model with llama.cpp and writes the queries, keys and values that it really used as a trace.
#include <cstdlib>

#include <unistd.h>

#include "run.hpp"

int main(int argc, char** argv) {
  // libgomp reads this once, before main(). Spinning barriers collapse where other processes use the cores: 240 ms a token
  // instead of 20 measured.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) {
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execv("/proc/self/exe", argv);  // where it fails, the dump is only slower
  }
  return kvbench::kvdump::run(argc, argv);
}
