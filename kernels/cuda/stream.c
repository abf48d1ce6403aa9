/* SPDX-License-Identifier: Apache-2.0
 *
 * In: operations that a library enqueues, events between them. Out: whether the GPU has reached an event.
 * Invariant: only close waits for the GPU; the first error of recording an event is kept and returned by
 * every later query.
 */
#include "kernels/cuda/stream.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "base/alloc.h"

struct cake_gpu_stream {
    cudaStream_t stream;
    int n_mark;
    cudaEvent_t *mark;  /* [n_mark] owned */
    cudaError_t failed; /* at setting a mark */
};

cake_gpu_stream *cake_gpu_stream_open(int n_mark, cake_buf *why)
{
    int least, most;
    cake_gpu_stream *q = cake_alloc(1, sizeof *q);
    q->mark = cake_alloc((size_t)n_mark, sizeof *q->mark);
    /* high priority: transfers are little work that others wait for */
    cudaError_t err = cudaDeviceGetStreamPriorityRange(&least, &most);
    if (err == cudaSuccess)
        err = cudaStreamCreateWithPriority(&q->stream, cudaStreamNonBlocking, most);
    for (; q->n_mark < n_mark && err == cudaSuccess; q->n_mark++)
        err = cudaEventCreateWithFlags(&q->mark[q->n_mark], cudaEventDisableTiming);
    if (err == cudaSuccess)
        return q;
    cudaGetLastError();
    cake_buf_adds(why, cudaGetErrorString(err));
    cake_gpu_stream_close(q);
    return NULL;
}

void cake_gpu_stream_close(cake_gpu_stream *q)
{
    if (!q)
        return;
    if (q->stream) {
        cudaStreamSynchronize(q->stream);
        cudaStreamDestroy(q->stream);
    }
    for (int i = 0; i < q->n_mark; i++)
        if (q->mark[i])
            cudaEventDestroy(q->mark[i]);
    cudaGetLastError();
    free(q->mark);
    free(q);
}

void *cake_gpu_stream_stream(const cake_gpu_stream *q)
{
    return q->stream;
}

void cake_gpu_stream_mark(cake_gpu_stream *q, int i)
{
    cudaError_t err = cudaEventRecord(q->mark[i], q->stream);
    q->failed = q->failed == cudaSuccess ? err : q->failed;
}

int cake_gpu_stream_passed(cake_gpu_stream *q, int i, cake_buf *why)
{
    cudaError_t err = q->failed == cudaSuccess ? cudaEventQuery(q->mark[i]) : q->failed;
    if (err == cudaErrorNotReady) {
        cudaGetLastError(); /* it is no error */
        return 0;
    }
    if (err == cudaSuccess)
        return 1;
    cake_buf_adds(why, cudaGetErrorString(err));
    return -1;
}
