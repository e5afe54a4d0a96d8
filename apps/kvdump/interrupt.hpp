// SPDX-License-Identifier: Apache-2.0
// SIGINT and SIGTERM: the first stops the dump at the next safe point, the second ends the process immediately.
#pragma once

namespace kvbench::kvdump {

void stop_on_signals();
bool interrupted() noexcept;
/// Throws Interrupted after such a signal.
void stop_if_interrupted();

}  // namespace kvbench::kvdump
