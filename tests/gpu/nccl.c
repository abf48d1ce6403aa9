/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake NCCL library: two processes of one host, with a file in each direction. The memory is the host's.
 * Streams work when they are queried (stream.h): then sent bytes are appended to the file, and received ones
 * are read if they are in it.
 *
 * CAKE_TEST_NCCL=old: a version that is too old. =other: odd ranks have another version. =init, =send: this
 * call fails on rank 1 (send: the second one). =garbage: wrong bytes arrive. =lost: nothing arrives, and
 * after a while the other rank is reported as gone. =slow: calls are in progress for a while first.
 */
#include <fcntl.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/gpu/stream.h"

struct ncclComm {
    int rank;
    int out, in; /* files */
    long read;   /* of `in` so far */
    int slow;    /* so many answers are "in progress" still */
    ncclResult_t then;
    int questions, aborted, finalized;
};

static int is(const char *word)
{
    const char *said = getenv("CAKE_TEST_NCCL");
    return said && !strcmp(said, word);
}

static int is_on_one(const char *word)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    rank = rank ? rank : getenv("PMI_RANK");
    return rank && !strcmp(rank, "1") && is(word);
}

/* The result of a call that does not block. */
static ncclResult_t answer(ncclComm_t comm, ncclResult_t result)
{
    comm->slow = is("slow") ? 3 : 0;
    comm->then = result;
    return comm->slow ? ncclInProgress : result;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = is("old") ? 2805 : is_on_one("other") ? 21903 : NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    const char *dir = getenv("TMPDIR");
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "%s/nccl.XXXXXX", dir ? dir : "/tmp");
    return mkdtemp(id->internal) ? ncclSuccess : ncclSystemError;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    char path[NCCL_UNIQUE_ID_BYTES + 8];
    *comm = NULL;
    if (nranks != 2 || config->blocking != 0)
        return ncclInvalidArgument;
    if (is("init"))
        return rank ? ncclSystemError : ncclRemoteError;
    *comm = calloc(1, sizeof **comm);
    (*comm)->rank = rank;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%d", id.internal, i);
        int file = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);
        *(i == rank ? &(*comm)->out : &(*comm)->in) = file;
        if (file < 0)
            return ncclSystemError;
    }
    return answer(*comm, ncclSuccess);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    *error = comm->slow > 0                          ? ncclInProgress
             : is("lost") && ++comm->questions > 100 ? ncclRemoteError
                                                     : comm->then;
    comm->slow--;
    return ncclSuccess;
}

/* A body on its way. */
typedef struct body {
    stream_work work;
    ncclComm_t comm;
    float *at;
    size_t bytes, done;
} body;

static bool send_body(stream_work *work)
{
    body *b = (body *)work;
    if (is("lost")) {
        free(b);
        return true;
    }
    float *copy = malloc(b->bytes);
    memcpy(copy, b->at, b->bytes);
    if (is("garbage"))
        copy[b->bytes / sizeof *copy / 2] += 1;
    if (write(b->comm->out, copy, b->bytes) != (ssize_t)b->bytes)
        abort();
    free(copy);
    free(b);
    return true;
}

static bool receive_body(stream_work *work)
{
    body *b = (body *)work;
    if (b->comm->aborted) {
        free(b);
        return true;
    }
    ssize_t n = pread(b->comm->in, (char *)b->at + b->done, b->bytes - b->done, b->comm->read);
    if (n < 0)
        abort();
    b->done += (size_t)n;
    b->comm->read += n;
    bool all = b->done == b->bytes;
    if (all)
        free(b);
    return all;
}

static ncclResult_t ask(ncclComm_t comm, bool (*run)(stream_work *), void *at, size_t count,
                        ncclDataType_t type, int peer, cudaStream_t to)
{
    stream *s = (void *)to;
    body *b = malloc(sizeof *b);
    *b = (body){{run}, comm, at, count * sizeof(float), 0};
    if (type != ncclFloat32 || peer != 1 - comm->rank)
        return ncclInvalidArgument;
    stream_add(s, &b->work);
    return answer(comm, ncclSuccess);
}

ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t to)
{
    static int n_sent;
    if (is("send") && ++n_sent == 2)
        return ncclSystemError;
    return ask(comm, send_body, (void *)from, count, type, peer, to);
}

ncclResult_t ncclRecv(void *at, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t to)
{
    return ask(comm, receive_body, at, count, type, peer, to);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    comm->finalized = 1;
    return answer(comm, ncclSuccess);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (!comm->finalized || comm->slow > 0)
        abort(); /* it would wait for the peer */
    close(comm->out);
    close(comm->in);
    free(comm);
    return ncclSuccess;
}

/* Ends what still waits. comm is not freed, since waiting work refers to it. */
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    close(comm->out);
    close(comm->in);
    comm->aborted = 1;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSystemError ? "a made-up system error" : "another made-up error";
}
