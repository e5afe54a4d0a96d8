// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "compare.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

std::vector<float> numbered(Index count, float first) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = first++;
  return values;
}

}  // namespace

TEST_CASE("arrays of every size arrive whole, from another thread, while the backend computes") {
  for_each_backend([](Backend& b) {
    const auto uploader = b.make_uploader();
    for (const Index count :
         {1, 1000, (2 << 20) - 1, 2 << 20, 5'000'001}) {  // 2^21 floats fill a stage of the CUDA uploader
      CAPTURE(count);
      Uploaded<float> first, second;
      std::thread other([&] {
        first = uploader->upload(numbered(count, 0));
        second = uploader->upload(numbered(count, 0.5f));
      });
      const auto busy = b.allocate<double>(4096);
      const auto rows = b.adopt(Random().normal(4096 * 64), 4096, 64);
      for (Index i = 0; i < sized(20, 2); ++i) b.run(kernels::SquaredNorms<Buffer>{.rows = rows, .out = busy});
      other.join();
      REQUIRE(first.size() == count);
      const auto a = b.adopt(std::move(first), count), c = b.adopt(std::move(second), 1, count);
      CHECK(b.read(a) == numbered(count, 0));
      CHECK(b.read(c) == numbered(count, 0.5f));
      CHECK(c.cols() == count);
    }
  });
}

TEST_CASE("uploaded memory is counted from its adoption on, and may outlive uploader and back end") {
  Buffer<float> kept;
  for_each_backend([&](Backend& b) {
    auto uploader = b.make_uploader();
    auto arrived = uploader->upload(numbered(12, 1));
    CHECK(b.held_bytes() == 0);
    auto buffer = b.adopt(std::move(arrived), 3, 4);
    uploader.reset();
    CHECK(b.held_bytes() == 48);
    CHECK(b.read(buffer.slice(2, 1)) == std::vector<float>{9, 10, 11, 12});
    kept = buffer;
  });
}
