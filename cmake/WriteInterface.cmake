# Run at build time (cmake -P): writes OUTPUT, which defines KVBENCH_INTERFACE as a digest of the HEADERS.
set(digests "")
foreach(header ${HEADERS})
  file(SHA256 ${header} digest)
  string(APPEND digests ${digest})
endforeach()
string(SHA256 digest "${digests}")
file(WRITE ${OUTPUT} "#define KVBENCH_INTERFACE \"${digest}\"\n")
