// SPDX-License-Identifier: Apache-2.0
// The threads of a launch and who of them runs: machine.cpp begins and ends them, meetings.cpp lets them wait for each other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fibers.hpp"
#include "machine.hpp"

namespace emulated {

constexpr unsigned kWarp = 32;

struct Thread {
  Place place;  // empty: it has not begun, or it runs
  std::uint64_t bits = 0;
  Where where;
  unsigned mask = 0;
  int from = 0;
  unsigned number = 0;
  uint3 index = {};
  Meeting meeting = Meeting::barrier;
  bool done = false, waiting = false;
};

struct Warp {
  unsigned arrived = 0, gone = 0;
};

struct Block {
  uint3 index = {};
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Thread*> ready;  // the last one comes first
  unsigned arrived = 0, predicates = 0, done = 0;
  std::vector<char> shared;  // while another block runs
};

class Machine {
 public:
  void run(const Kernel& kernel, Order order, Random& random);

  int meet_block(Meeting kind, bool predicate, Where where);
  std::uint64_t meet_warp(Meeting kind, unsigned mask, std::uint64_t bits, int from, Where where);
  void meet_grid(Where where);

 private:
  struct Worker {
    Place place;
  };

  void begin(Block& block, std::uint64_t index);
  void run_alone(const std::vector<std::uint64_t>& blocks);
  void run_together(const std::vector<std::uint64_t>& blocks);
  void enter(Block& block);
  void wait(Thread& thread, Meeting kind, Where where);
  [[gnu::always_inline]] void go_on(Place& here);
  void hire();
  void take_next();
  void release(Block& block, std::vector<Thread*>& threads);
  void work(Worker& self);
  void give_result_of_warp(unsigned first, unsigned mask);
  void abandon();
  [[noreturn]] void stuck(const std::vector<Block*>& blocks);
  std::string text_of(const Thread& thread) const;
  template <class T>
  void arrange(std::vector<T>& items);

  const Kernel* kernel_ = nullptr;
  Order order_ = Order::forward;
  Random* random_ = nullptr;
  Block* block_ = nullptr;  // the one that runs, and its thread
  Thread* thread_ = nullptr;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Thread*> released_;
  unsigned at_grid_ = 0;
  std::string fault_;
  Place main_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;
};

extern Machine machine;

inline void Machine::take_next() {
  thread_ = block_->ready.back();
  block_->ready.pop_back();
  threadIdx = thread_->index;
}

/// Switches to the next thread that can go on, or out of the block; returns when somebody switches to `here`.
inline void Machine::go_on(Place& here) {
  Place* to = &main_;
  if (!block_->ready.empty() && fault_.empty()) {
    take_next();
    to = &thread_->place;
    if (!thread_->waiting) {  // it has not begun
      if (idle_.empty()) hire();
      to = &idle_.back()->place;
      idle_.pop_back();
    }
  }
  if (to == &here) return;
  switch_to(*to, here);
}

}  // namespace emulated
