# Run at build time (cmake -P): writes OUTPUT from TEMPLATE when the commit has changed.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --exclude=* --abbrev=10
  OUTPUT_VARIABLE KVBENCH_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR KVBENCH_COMMIT STREQUAL "")
  set(KVBENCH_COMMIT unknown)
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)
