// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "scheduler.hpp"

namespace emulated {

void Machine::wait(Thread& thread, Sync kind, Where where) {
  thread.waiting = true;
  thread.sync = kind;
  thread.where = where;
}

int Machine::sync_block(Sync kind, bool predicate, Where where) {
  Thread& self = *thread_;
  wait(self, kind, where);
  Block& block = *block_;
  block.predicates = predicate + (block.arrived == 0 ? 0 : block.predicates);
  if (++block.arrived == block.threads.size()) {
    for (Thread& thread : block.threads) {
      if (thread.sync != kind || thread.where.line != where.line || thread.where.file != where.file) {
        throw Fault("threads of a block wait at different barriers: " + text_of(thread) + ", " + text_of(self));
      }
      thread.bits = block.predicates;
      released_.push_back(&thread);
    }
    block.arrived = 0;
    release(block, released_);
  }
  run_next(self.fiber);
  return static_cast<int>(self.bits);
}

std::uint64_t Machine::sync_warp(Sync kind, unsigned mask, std::uint64_t bits, int from, Where where) {
  Thread& self = *thread_;
  wait(self, kind, where);
  self.mask = mask;
  self.bits = bits;
  self.from = from;
  Warp& warp = block_->warps[self.number / kWarp];
  const unsigned own = 1u << self.number % kWarp;
  if ((mask & own) == 0) throw Fault("a mask does not contain the calling lane: " + text_of(self));
  if ((mask & warp.exited) != 0) {
    throw Fault("a mask names lane " + std::to_string(std::countr_zero(mask & warp.exited)) +
                ", which has exited or does not exist: " + text_of(self));
  }
  warp.arrived |= own;
  if ((warp.arrived & mask) == mask) {
    warp.arrived &= ~mask;
    release_warp(self.number / kWarp * kWarp, mask);
  }
  run_next(self.fiber);
  return self.bits;
}

/// Gives each lane of the mask its result and makes it ready.
void Machine::release_warp(unsigned first, unsigned mask) {
  Thread* const lanes = &block_->threads[first];
  const Sync sync = lanes[std::countr_zero(mask)].sync;
  std::uint64_t sent[kWarp];
  std::uint64_t ballot = 0;
  for (unsigned left = mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (lanes[lane].mask != mask || lanes[lane].sync != sync) {
      throw Fault("lanes of a warp wait at different calls: " + text_of(lanes[std::countr_zero(mask)]) + ", " +
                  text_of(lanes[lane]));
    }
    sent[lane] = lanes[lane].bits;
    ballot |= std::uint64_t{sent[lane] != 0} << lane;
  }
  constexpr std::uint64_t unknown = std::uint64_t{poison} << 32 | poison;
  // The lane pushed last runs first. An odd step visits all lanes.
  unsigned at = order_ == Order::forward ? kWarp - 1 : order_ == Order::reverse ? 0 : (*random_)();
  const unsigned step = order_ == Order::forward ? ~0u : order_ == Order::reverse ? 1 : (*random_)() | 1u;
  for (unsigned i = 0; i < kWarp; ++i, at += step) {
    if ((mask >> at % kWarp & 1u) == 0) continue;
    Thread& lane = lanes[at % kWarp];
    if (sync == Sync::ballot) lane.bits = ballot;
    if (sync == Sync::shuffle) lane.bits = (mask >> lane.from & 1u) != 0 ? sent[lane.from] : unknown;
    block_->ready.push_back(&lane);
  }
}

void Machine::sync_grid(Where where) {
  Thread& self = *thread_;
  wait(self, Sync::grid, where);
  if (!kernel_->cooperative) throw Fault("grid synchronisation in a launch that is not cooperative: " + text_of(self));
  ++at_grid_;
  run_next(self.fiber);
}

int sync_block(Sync kind, bool predicate, Where where) { return machine.sync_block(kind, predicate, where); }
std::uint64_t sync_warp(Sync kind, unsigned mask, std::uint64_t bits, int from, Where where) {
  return machine.sync_warp(kind, mask, bits, from, where);
}
void sync_grid(Where where) { machine.sync_grid(where); }

}  // namespace emulated
