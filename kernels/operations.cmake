# The operations by the names of their files: include/kvbench/kernels/<name>.hpp, ref/<name>.cpp, cpu/<name>.cpp,
# cuda/<name>.cu and tests/equivalence/<name>.cpp.
set(operation_files attention balance codes distances pages rows similarity spread topk weighted_attention)
