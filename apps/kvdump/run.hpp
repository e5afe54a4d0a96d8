// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kvbench::kvdump {

/// The whole program. Returns the exit code: 0 done, 1 the self check failed, 2 bad usage or input, 3 input/output or memory,
/// 130 interrupted. Errors are one sentence on stderr.
int run(int argc, char** argv);

}  // namespace kvbench::kvdump
