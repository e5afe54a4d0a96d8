// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/run_kvbench.hpp>

int main(int argc, char** argv) { return kvbench::app::run_kvbench(argc, argv); }
