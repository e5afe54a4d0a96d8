// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

TEST_CASE("buffers: adopt, slice, fill, read") {
  const auto ref = make_ref_backend();
  auto rows = matrix<float>(*ref, {{1, 2}, {3, 4}, {5, 6}});
  CHECK(ref->read(rows.slice(1, 2)) == std::vector<float>{3, 4, 5, 6});
  CHECK(ref->read(rows.slice(3, 0)).empty());
  auto middle = rows.slice(1, 1);
  ref->fill(middle, 7.0f);
  CHECK(ref->read(rows) == std::vector<float>{1, 2, 7, 7, 5, 6});
  CHECK_FALSE(Buffer<float>{}.present());
}

TEST_CASE("a view on the host shows the buffer and outlives its handles") {
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    HostView<float> view;
    {
      const Buffer<float> rows = backend->adopt(std::vector<float>{1, 2, 3, 4, 5, 6}, 3, 2);
      view = backend->on_host(rows.slice(1, 2));
      CHECK(view.data() == backend->on_host(rows).data() + 2);  // no copy
    }
    CHECK(std::vector(view.begin(), view.end()) == std::vector<float>{3, 4, 5, 6});
    CHECK(backend->on_host(Buffer<const float>{}).size() == 0);
  }
}

TEST_CASE("a backend names itself and adds up the declared work") {
  const auto ref = make_ref_backend();
  const auto cpu = make_cpu_backend(Isa::scalar);
  CHECK(ref->device() == "ref");
  CHECK(cpu->device() == "cpu");
  CHECK(cpu->isa() == "scalar");
  CHECK(make_cpu_backend()->isa() == name_of(best_isa()));

  auto out = ref->allocate<double>(2);
  const auto rows = matrix<float>(*ref, {{1, 2, 3}, {4, 5, 6}});
  ref->run(kernels::SquaredNorms<Buffer>{rows, out});
  ref->run(kernels::SquaredNorms<Buffer>{rows, out});
  CHECK(ref->cost().flops == 24);
  CHECK(ref->cost().bytes == 2 * (24 + 16));
}

TEST_CASE("an unavailable instruction set or device is refused with a sentence") {
  for (const Isa isa : {Isa::avx2, Isa::avx512})
    if (!isa_available(isa)) CHECK_THROWS_AS(make_cpu_backend(isa), std::runtime_error);
  if (!cuda_available()) CHECK_THROWS_AS(make_cuda_backend(), std::runtime_error);
}
