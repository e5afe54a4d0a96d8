// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/node_name.hpp>

#include <doctest/doctest.h>

using namespace kvbench::llama;

TEST_CASE("names of attention nodes") {
  REQUIRE(parse_node_name("Qcur-0"));
  CHECK(parse_node_name("Qcur-0")->role == Role::query);
  CHECK(parse_node_name("Kcur-17")->role == Role::key);
  CHECK(parse_node_name("Kcur-17")->layer == 17);
  CHECK(parse_node_name("Vcur-2")->role == Role::value);
  CHECK(parse_node_name("Qcur_normed-2")->role == Role::normed_query);
  CHECK(parse_node_name("Kcur_normed-2")->role == Role::normed_key);
  CHECK(parse_node_name("kq_soft_max-2")->role == Role::softmax);
  CHECK(parse_node_name("kqv_out-29")->role == Role::output);
  CHECK(parse_node_name("attn_norm-3")->role == Role::attention_input);
}

TEST_CASE("only exact names") {
  for (const char* name :
       {"", "Qcur", "Qcur-", "-1", "Qcur-0 (view)", "Qcur-1 (reshaped)", "Qcur--1", "xQcur-1", "Qcur-1x", "kqv-1",
        "kq-1", "Qcur_clamped-1", "attn_norm_2-1", "blk.1.attn_norm", "Qcur-99999999999"}) {
    CAPTURE(name);
    CHECK_FALSE(parse_node_name(name));
  }
}
