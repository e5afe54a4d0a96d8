// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include "orders.hpp"

#include <cstdio>

#include <cuda_runtime.h>
#include <doctest/doctest.h>

namespace kvbench::test {

std::vector<std::unique_ptr<Backend>> emulated_backends(const std::vector<emulated::Order>& orders) {
  std::vector<std::unique_ptr<Backend>> backends;
  for (const emulated::Order order : orders) {
    cudaSetDevice(static_cast<int>(order));
    backends.push_back(make_cuda_backend());
  }
  cudaSetDevice(0);
  return backends;
}

}  // namespace kvbench::test

namespace {

int failures = 0;

/// Compares the devices after each test case.
struct SameBits : doctest::IReporter {
  const doctest::TestCaseData* test = nullptr;
  bool crashed = false;

  explicit SameBits(const doctest::ContextOptions&) {}
  void test_case_start(const doctest::TestCaseData& started) override { test = &started; }
  void test_case_end(const doctest::CurrentTestCaseStats&) override {
    if (crashed) return;  // the runtime is still locked
    emulated::check_memory();
    if (!emulated::fault().empty()) fail(emulated::fault().c_str());
    for (int device = 1; device < emulated::devices; ++device) {
      const std::uint64_t digest = emulated::digest(device);
      if (digest == 0 || digest == emulated::digest(0)) continue;  // 0: not used
      fail("the results depend on the order of threads");
      break;
    }
  }
  void fail(const char* why) {
    ++failures;
    std::fprintf(stderr, "%s:%u: \"%s\": %s\n", test->m_file.c_str(), test->m_line, test->m_name, why);
  }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException& thrown) override {
    crashed = thrown.is_crash;
    if (crashed) fail(("crashed in " + emulated::running_kernel()).c_str());
  }
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("same_bits", 1, SameBits);

}  // namespace

int main(int argc, char** argv) {
  const int status = doctest::Context(argc, argv).run();
  return status != 0 ? status : failures != 0 ? 1 : 0;
}
