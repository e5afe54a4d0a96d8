// SPDX-License-Identifier: Apache-2.0
// Inputs of keys with one member changed at a time, as their visit() lists them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <kvbench/store/key.hpp>

namespace kvbench::testing {

/// An archive that changes the member with number `at`; `count` is then the number of members, those of members
/// included.
class MemberChanger {
 public:
  explicit MemberChanger(int at) : at_(at) {}
  int count = 0;

  template <class... T>
  void operator()(T&... members) {
    (take(members), ...);
  }

 private:
  template <store::Scalar T>
  void take(T& value) {
    if (count++ != at_) return;
    if constexpr (std::is_same_v<T, bool>)
      value = !value;
    else
      value = static_cast<T>(static_cast<long>(value) + 1);
  }
  void take(std::string& text) {
    if (count++ == at_) text += "x";
  }
  template <class T>
  void take(std::vector<T>& values) {
    if (count++ == at_) values.emplace_back();
  }
  template <class T>
  void take(T& value) {
    visit(*this, value);
  }

  int at_;
};

template <class Inputs>
int number_of_members() {
  MemberChanger none(-1);
  Inputs inputs;
  visit(none, inputs);
  return none.count;
}

/// The different keys of such inputs: as they are, and with each of their members changed.
template <class Inputs>
std::set<std::string> keys_of_changed() {
  std::set<std::string> keys = {store::key_of(Inputs{})};
  for (int member = 0; member < number_of_members<Inputs>(); ++member) {
    MemberChanger changer(member);
    Inputs inputs;
    visit(changer, inputs);
    keys.insert(store::key_of(inputs));
  }
  return keys;
}

}  // namespace kvbench::testing
