/* kernels.hip - greta's kernels for AMD GPUs: the twins of src/kernels/cpu, one code object. */
#include "kernels/hip/device.hip"
#include "kernels/hip/weights.hip"
#include "kernels/hip/small.hip"
#include "kernels/hip/matmul.hip"
#include "kernels/hip/attention.hip"
#include "kernels/hip/fused.hip"
