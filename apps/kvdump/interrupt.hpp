// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM: the first asks the dump to stop at the next safe point, the second ends the process at once.
#pragma once

namespace kvbench::kvdump {

void stop_on_signals();
bool interrupted() noexcept;
/// Throws Interrupted where a signal has asked to stop.
void stop_if_interrupted();

}  // namespace kvbench::kvdump
