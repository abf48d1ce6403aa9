/* SPDX-License-Identifier: Apache-2.0 */
#include "executor.h"

#include "kernels/cuda/topk.cu"
