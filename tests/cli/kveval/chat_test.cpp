// SPDX-License-Identifier: Apache-2.0
#include <apps/llama/chat.hpp>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

using namespace kvbench;
using llama::chat_texts;

TEST_CASE("the texts around messages are cut from what llama.cpp makes of a template") {
  SUBCASE("ChatML, as in SmolLM2") {
    const auto texts = chat_texts(
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
        "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
        "m.gguf");
    CHECK(texts.before == "<|im_start|>user\n");
    CHECK(texts.after == "<|im_end|>\n<|im_start|>assistant\n");
    CHECK(texts.between == "<|im_end|>\n<|im_start|>user\n");
  }
  SUBCASE("Gemma, which removes white space around messages") {
    const auto texts = chat_texts(
        "{% for message in messages %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + "
        "'<end_of_turn>\n' }}{% endfor %}",
        "m.gguf");
    CHECK(texts.before == "<start_of_turn>user\n");
    CHECK(texts.after == "<end_of_turn>\n<start_of_turn>model\n");
    CHECK(texts.between == "<end_of_turn>\n<start_of_turn>user\n");
  }
}

TEST_CASE("a template that llama.cpp does not know is refused") {
  for (const char* text : {"", "{{ messages }}"}) {
    CHECK_THROWS_WITH_AS(chat_texts(text, "m.gguf"),
                         doctest::Contains("m.gguf: llama.cpp does not know its chat template"), Error);
  }
}
