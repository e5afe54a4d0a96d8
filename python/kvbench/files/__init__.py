# SPDX-License-Identifier: Apache-2.0
"""Files of traces: what is checked in them, how they are read and written.

    access.py         files open for reading; new files that are written atomically
    schema.py         attributes and datasets of traces and raw results, with their rules
    storage.py        what a dataset claims, compared with its file
    hdf5.py           element types, slabs, attributes
    trace.py          Trace
    trace_writer.py   TraceWriter
    gguf.py           GGUF files, which may be parts of a split model"""
