/* SPDX-License-Identifier: Apache-2.0
 *
 * In: sources of constraints. Out: grammars, which a thread compiles in the order of asking.
 * Invariant: a grammar that nobody compiles is in `waiting`, which has a reference of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "grammar/grammar_parts.h"

enum { KEPT_GRAMMARS = 256, KEPT_BYTES = 256 << 20, STACK = 8 << 20 /* schemas nest */ };

typedef struct kept {
    cake_grammar *grammar;
    int64_t used;
} kept;

struct cake_grammar_cache {
    pthread_mutex_t lock;
    kept kept[KEPT_GRAMMARS];
    int n;
    int64_t clock;

    pthread_t thread;
    pthread_cond_t more; /* waiting is not empty, or stop */
    bool threaded, stop;
    cake_grammar **waiting; /* [n_waiting] */
    size_t n_waiting, cap_waiting;

    pthread_mutex_t vocabulary_lock; /* of all that follows */
    cake_vocabulary *vocabulary;     /* NULL: not made yet */
    const cake_tokenizer *tokenizer; /* what it is made of */
    const int32_t *eos;
    int n_vocab, n_eos;
};

cake_grammar_cache *cake_grammar_cache_open(void)
{
    cake_grammar_cache *c = cake_alloc(1, sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->vocabulary_lock, NULL);
    pthread_cond_init(&c->more, NULL);
    return c;
}

static void drop_kept(cake_grammar_cache *c, int i)
{
    cake_grammar_close(c->kept[i].grammar);
    c->kept[i] = c->kept[--c->n];
}

void cake_grammar_cache_close(cake_grammar_cache *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_signal(&c->more);
    pthread_mutex_unlock(&c->lock);
    if (c->threaded)
        pthread_join(c->thread, NULL);
    while (c->n)
        drop_kept(c, 0);
    for (size_t i = 0; i < c->n_waiting; i++)
        cake_grammar_close(c->waiting[i]);
    free(c->waiting);
    cake_vocabulary_close(c->vocabulary);
    pthread_cond_destroy(&c->more);
    pthread_mutex_destroy(&c->vocabulary_lock);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

const cake_vocabulary *cake_grammar_cache_vocabulary(cake_grammar_cache *c)
{
    pthread_mutex_lock(&c->vocabulary_lock);
    if (!c->vocabulary && c->tokenizer)
        c->vocabulary = cake_vocabulary_open(c->tokenizer, c->n_vocab, c->eos, c->n_eos);
    pthread_mutex_unlock(&c->vocabulary_lock);
    return c->vocabulary;
}

static void *compile_grammars(void *arg)
{
    cake_grammar_cache *c = arg;
    pthread_mutex_lock(&c->lock);
    while (!c->stop) {
        if (!c->n_waiting) {
            pthread_cond_wait(&c->more, &c->lock);
            continue;
        }
        cake_grammar *g = c->waiting[0];
        memmove(c->waiting, c->waiting + 1, --c->n_waiting * sizeof *c->waiting);
        pthread_mutex_unlock(&c->lock);
        cake_grammar_cache_vocabulary(c);
        cake_grammar_compile(g);
        cake_grammar_close(g);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

void cake_grammar_cache_start(cake_grammar_cache *c)
{
    c->threaded = cake_thread_start(&c->thread, STACK, compile_grammars, c);
}

void cake_grammar_cache_serve(cake_grammar_cache *c, const cake_tokenizer *tokenizer, int n_vocab,
                              const int32_t *eos, int n_eos)
{
    pthread_mutex_lock(&c->vocabulary_lock);
    c->tokenizer = tokenizer;
    c->n_vocab = n_vocab;
    c->eos = eos;
    c->n_eos = n_eos;
    pthread_mutex_unlock(&c->vocabulary_lock);
}

static kept *find(cake_grammar_cache *c, const cake_constraint_source *s)
{
    for (int i = 0; i < c->n; i++) {
        const cake_constraint_source *own = &c->kept[i].grammar->source;
        if (own->kind == s->kind && own->compact == s->compact && own->closed == s->closed &&
            own->len == s->len && (!s->len || !memcmp(own->text, s->text, s->len)))
            return &c->kept[i];
    }
    return NULL;
}

static size_t kept_bytes(const cake_grammar_cache *c)
{
    size_t sum = 0;
    for (int i = 0; i < c->n; i++)
        sum += cake_grammar_bytes(c->kept[i].grammar);
    return sum;
}

static kept *keep(cake_grammar_cache *c, cake_grammar *g)
{
    while (c->n && (c->n == KEPT_GRAMMARS || kept_bytes(c) > KEPT_BYTES)) {
        int oldest = 0;
        for (int i = 1; i < c->n; i++)
            oldest = c->kept[i].used < c->kept[oldest].used ? i : oldest;
        drop_kept(c, oldest);
    }
    c->kept[c->n] = (kept){.grammar = g};
    return &c->kept[c->n++];
}

cake_grammar *cake_grammar_cache_get(cake_grammar_cache *c, const cake_constraint_source *source)
{
    pthread_mutex_lock(&c->lock);
    kept *own = find(c, source);
    if (!own) {
        own = keep(c, cake_grammar_new(source));
        if (c->threaded) {
            CAKE_RESERVE(c->waiting, c->n_waiting, c->cap_waiting);
            c->waiting[c->n_waiting++] = cake_grammar_share(own->grammar);
            pthread_cond_signal(&c->more);
        }
    }
    own->used = ++c->clock;
    cake_grammar *g = cake_grammar_share(own->grammar);
    pthread_mutex_unlock(&c->lock);
    if (!c->threaded)
        cake_grammar_compile(g);
    return g;
}
