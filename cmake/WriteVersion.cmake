# Run at build time (cmake -P): writes OUTPUT from TEMPLATE when the commit has changed.
set(KVBENCH_COMMIT "$Format:%H$")   # set by git archive (.gitattributes)
string(SUBSTRING "${KVBENCH_COMMIT}" 0 10 KVBENCH_COMMIT)
if(NOT KVBENCH_COMMIT MATCHES "^[0-9a-f]+$")
  set(KVBENCH_COMMIT unknown)
endif()
# Only in a checkout of kvbench: sources that were unpacked inside another repository must not get its commit.
if(EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --exclude=* --abbrev=10
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0 AND NOT described STREQUAL "")
    set(KVBENCH_COMMIT ${described})
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
