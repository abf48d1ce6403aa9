/* SPDX-License-Identifier: Apache-2.0
 *
 * Letters between two ranks, beside the waves: bytes of any length, in order, both ways. They leave in pieces
 * of bounded size, a bounded number of which is under way, and nothing waits: what cannot leave yet is kept
 * by its sender, and a receiver takes no more than the letter that it has not read.
 */
#ifndef CAKE_LINK_MAIL_H
#define CAKE_LINK_MAIL_H

#include <stdbool.h>
#include <stddef.h>

#include "link/world.h"

enum {
    CAKE_PIECE = 32 << 10,
    CAKE_PIECES = 4
}; /* bytes of a piece at most; of each direction under way at most */

typedef struct cake_mail cake_mail;

/* What carries pieces. */
typedef struct cake_pipe cake_pipe;
typedef struct cake_pipe_kind {
    char *(*room)(cake_pipe *pipe);              /* where one more piece may be written; NULL: not now */
    void (*send)(cake_pipe *pipe, size_t bytes); /* what was written there leaves */
    const char *(*arrived)(cake_pipe *pipe, size_t *bytes); /* the oldest piece that is there, or NULL */
    void (*release)(cake_pipe *pipe);                       /* it was read */
    bool (*leaving)(cake_pipe *pipe);                       /* whether a piece is still under way */
    void (*close)(cake_pipe *pipe);
} cake_pipe_kind;

/* What every kind begins with. */
struct cake_pipe {
    const cake_pipe_kind *kind;
};

/* To and from a rank of the world, which has to open the other end. */
cake_err cake_pipe_open_mpi(const cake_world *world, int peer, cake_pipe **out);
size_t cake_pipe_bytes(void); /* of its buffers */

cake_mail *cake_mail_open(cake_pipe *pipe); /* takes the pipe over */
void cake_mail_close(cake_mail *mail);      /* NULL is fine; nothing may be under way */

/* Keeps the letter until it has left; len is at least 1. */
void cake_mail_send(cake_mail *mail, const void *letter, size_t len);
/* The next letter that is there as a whole, valid until the next call of this; NULL: none. Called often. */
const char *cake_mail_next(cake_mail *mail, size_t *len);
/* Lets letters that were sent leave. Called often. */
void cake_mail_move(cake_mail *mail);
/* Whether anything was sent that has not arrived. */
bool cake_mail_leaving(const cake_mail *mail);

#endif
