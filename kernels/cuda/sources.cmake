# The sources of the CUDA backend, for nvcc and for the host compiler of tests/emulated.
set(cuda_files context.cpp uploader.cpp backend.cu attention.cu weighted_attention.cu topk.cu rows.cu distances.cu philox.cu
  similarity.cu pages.cu balance.cu spread.cu)
