// SPDX-License-Identifier: Apache-2.0
// The threads of a launch and their scheduling: machine.cpp starts and ends them, synchronisation.cpp makes them wait
// for each other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fibers.hpp"
#include "machine.hpp"

namespace emulated {

constexpr unsigned kWarp = 32;

struct Thread {
  Fiber fiber;  // empty: it has not started, or it runs
  std::uint64_t bits = 0;
  Where where;
  unsigned mask = 0;
  int from = 0;
  unsigned number = 0;
  uint3 index = {};
  Sync sync = Sync::barrier;
  bool done = false, waiting = false;
};

struct Warp {
  unsigned arrived = 0, exited = 0;
};

struct Block {
  uint3 index = {};
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Thread*> ready;  // a stack
  unsigned arrived = 0, predicates = 0, done = 0;
  std::vector<char> shared;  // while another block runs
};

class Machine {
 public:
  void run(const Kernel& kernel, Order order, Random& random);

  int sync_block(Sync kind, bool predicate, Where where);
  std::uint64_t sync_warp(Sync kind, unsigned mask, std::uint64_t bits, int from, Where where);
  void sync_grid(Where where);

 private:
  struct Worker {
    Fiber fiber;
  };

  void begin(Block& block, std::uint64_t index);
  void run_alone(const std::vector<std::uint64_t>& blocks);
  void run_together(const std::vector<std::uint64_t>& blocks);
  void enter(Block& block);
  void wait(Thread& thread, Sync kind, Where where);
  [[gnu::always_inline]] void run_next(Fiber& here);
  void add_worker();
  void select_next();
  void release(Block& block, std::vector<Thread*>& threads);
  void work(Worker& self);
  void release_warp(unsigned first, unsigned mask);
  void drop_threads();
  [[noreturn]] void report_deadlock(const std::vector<Block*>& blocks);
  std::string text_of(const Thread& thread) const;
  template <class T>
  void apply_order(std::vector<T>& items);

  const Kernel* kernel_ = nullptr;
  Order order_ = Order::forward;
  Random* random_ = nullptr;
  Block* block_ = nullptr;  // that runs, and its thread
  Thread* thread_ = nullptr;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Thread*> released_;
  unsigned at_grid_ = 0;
  std::string fault_;
  Fiber main_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;
};

extern Machine machine;

inline void Machine::select_next() {
  thread_ = block_->ready.back();
  block_->ready.pop_back();
  threadIdx = thread_->index;
}

/// Switches to the next ready thread, or out of the block where there is none; returns when `here` is resumed.
inline void Machine::run_next(Fiber& here) {
  Fiber* to = &main_;
  if (!block_->ready.empty() && fault_.empty()) {
    select_next();
    to = &thread_->fiber;
    if (!thread_->waiting) {  // it has not started
      if (idle_.empty()) add_worker();
      to = &idle_.back()->fiber;
      idle_.pop_back();
    }
  }
  if (to == &here) return;
  switch_to(*to, here);
}

}  // namespace emulated
