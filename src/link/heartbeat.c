/* SPDX-License-Identifier: Apache-2.0
 *
 * In: status of this rank. Out: status of the others. Rank 0 listens, the others connect. A connection that
 * does not present the job's token (shared over MPI) is closed. Invariant: the thread allocates no memory and
 * blocks signals. Descriptors stay open until the thread has ended, so that a last message from another
 * thread cannot reach a reused descriptor.
 */
#include "link/heartbeat.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stderr.h"
#include "base/thread.h"

enum {
    MAX_STRANGERS = 32,
    NAMES = 512,
    CONNECT_MS = 1000,
    CONNECTS = 10,
    STACK = 256 << 10,
    MANY_RANKS = 16,
    SPARE_FILES = 256
};

static const double beat_s = 0.5;
static const double pause_s = 2; /* a longer gap between rounds of the thread: the process was stopped */

typedef enum kind { BEAT = 1, LEAVE, FAILED } kind;

typedef struct message {
    uint64_t token[2];
    int32_t kind, rank, status, padding;
    cake_rank_beat beat;
} message;

typedef struct connection {
    int fd;           /* -1: none */
    atomic_bool dead; /* set by the heartbeat thread, read by others */
    size_t got;       /* bytes of `in` */
    message in;
    size_t left; /* unsent bytes of `out`; they go first */
    message out[2];
} connection;

/* Address of rank 0. */
typedef struct root_address {
    uint64_t token[2];
    uint16_t port; /* 0: not listening */
    char host[64], names[NAMES];
} root_address;

struct cake_heartbeat {
    cake_heartbeat_owner owner;
    int rank, size, n_pending, n_connection; /* connections to all ranks, or to rank 0 */
    int listener, wake[2];
    root_address root_address;
    bool same_host; /* rank 0 is on this host */
    connection *lines;
    connection *pending;   /* [n_pending] connections whose rank is not known yet */
    cake_peer *peers;      /* [n_connection] */
    struct pollfd *polled; /* [n_connection + n_pending + 2] */
    atomic_bool stop;
    atomic_bool ending;    /* this rank ends and has reported why: ends of others are not reported */
    pthread_mutex_t mutex; /* protects sends: a last message may come from another thread */
    pthread_t thread;
};

static _Atomic(cake_heartbeat *) current;

static message message_of(const cake_heartbeat *p, kind what)
{
    message m = {.token = {p->root_address.token[0], p->root_address.token[1]},
                 .kind = (int32_t)what,
                 .rank = p->rank};
    if (what == BEAT)
        p->owner.fill(p->owner.self, &m.beat);
    return m;
}

/* Sends the rest of earlier messages; true if nothing remains. Call it with the mutex held. */
static bool send_backlog(connection *l)
{
    if (l->fd < 0 || l->dead)
        l->left = 0;
    while (l->left) {
        ssize_t n = send(l->fd, l->out, l->left, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) /* the peer has closed */
            l->left = 0;
        if (n <= 0)
            break;
        l->left -= (size_t)n;
        memmove(l->out, (char *)l->out + n, l->left);
    }
    return !l->left;
}

/* Sends a message. A beat is dropped while an earlier message is incomplete, since the next one replaces it;
 * last messages are kept. Call it with the mutex held. */
static void send_message(connection *l, const message *m)
{
    bool clear = send_backlog(l);
    if (l->fd < 0 || l->dead || (!clear && (m->kind == BEAT || l->left > sizeof *m)))
        return;
    memcpy((char *)l->out + l->left, m, sizeof *m);
    l->left += sizeof *m;
    send_backlog(l);
}

static void broadcast(cake_heartbeat *p, const message *m)
{
    pthread_mutex_lock(&p->mutex);
    for (int i = 0; i < p->n_connection; i++)
        send_message(&p->lines[i], m);
    pthread_mutex_unlock(&p->mutex);
}

/* Before closing: waits until everything is sent, or no peer has accepted data for some time. */
static void drain_sends(cake_heartbeat *p)
{
    enum { PATIENCE = 20 }; /* hundredths of a second */
    bool sent_all = false;
    for (int i = 0; !sent_all && i < PATIENCE; i++) {
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        sent_all = true;
        pthread_mutex_lock(&p->mutex);
        for (int k = 0; k < p->n_connection; k++)
            sent_all &= send_backlog(&p->lines[k]);
        pthread_mutex_unlock(&p->mutex);
    }
}

/* ---- receiving */

static void handle_message(cake_peer *peer, const message *m, double now)
{
    peer->heard = now;
    if (m->kind == LEAVE)
        peer->state = CAKE_PEER_LEFT;
    if (m->kind == FAILED) {
        peer->state = CAKE_PEER_FAILED;
        peer->status = m->status;
    }
    if (m->kind != BEAT || peer->state > CAKE_PEER_HEARD)
        return;
    bool first = peer->state == CAKE_PEER_NONE;
    peer->state = CAKE_PEER_HEARD;
    if (first || m->beat.steps != peer->beat.steps || m->beat.phase != peer->beat.phase)
        peer->progress_at = now;
    if (first || m->beat.returned != peer->beat.returned)
        peer->returned_at = now;
    peer->beat = m->beat;
    peer->beat.layers[CAKE_STATUS_LAYERS - 1] = 0;
}

/* Receives one complete message, or returns false. *over: the peer closed the connection. */
static bool receive(connection *l, bool *over)
{
    while (l->got < sizeof l->in) {
        ssize_t n = recv(l->fd, (char *)&l->in + l->got, sizeof l->in - l->got, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) { /* other errors come from the network: the peer is silent, not gone */
            l->dead = !n || (errno != EAGAIN && errno != EWOULDBLOCK);
            *over = !n || errno == ECONNRESET || errno == EPIPE;
            return false;
        }
        l->got += (size_t)n;
    }
    l->got = 0;
    return true;
}

static bool is_from_job(const cake_heartbeat *p, const message *m)
{
    return m->token[0] == p->root_address.token[0] && m->token[1] == p->root_address.token[1];
}

static void read_line(cake_heartbeat *p, int i, double now)
{
    connection *l = &p->lines[i];
    cake_peer *peer = &p->peers[i];
    bool over = false;
    while (!l->dead && receive(l, &over))
        if (is_from_job(p, &l->in))
            handle_message(peer, &l->in, now);
    if (over && peer->state == CAKE_PEER_HEARD) /* if it never sent a message, another program answered */
        peer->state = CAKE_PEER_GONE;
}

static void close_connection(connection *l)
{
    close(l->fd);
    *l = (connection){.fd = -1};
}

/* The first message of a connection identifies its rank. */
static void read_pending(cake_heartbeat *p, connection *l, double now)
{
    bool over = false;
    if (!receive(l, &over)) {
        if (l->dead)
            close_connection(l);
        return;
    }
    int rank = l->in.rank;
    if (!is_from_job(p, &l->in) || rank < 1 || rank >= p->size || p->lines[rank].fd >= 0) {
        close_connection(l);
        return;
    }
    handle_message(&p->peers[rank], &l->in, now);
    message m = message_of(p, BEAT); /* confirms to the peer which rank it has reached */
    pthread_mutex_lock(&p->mutex);
    p->lines[rank] = *l;
    send_message(&p->lines[rank], &m);
    pthread_mutex_unlock(&p->mutex);
    *l = (connection){.fd = -1};
    read_line(p, rank, now);
}

static void accept_all(cake_heartbeat *p)
{
    int fd, one = 1, at = 0;
    while ((fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        while (at < p->n_pending && p->pending[at].fd >= 0)
            at++;
        if (at == p->n_pending) { /* ranks identify themselves at once */
            at = 0;
            close_connection(&p->pending[at]);
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        p->pending[at] = (connection){.fd = fd};
    }
}

/* ---- connecting */

static bool connect_address(cake_heartbeat *p, const char *address)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(p->root_address.port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(p->root_address.port)};
    bool is_four = inet_pton(AF_INET, address, &four.sin_addr) == 1;
    if (!is_four &&
        (inet_pton(AF_INET6, address, &six.sin6_addr) != 1 || IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr)))
        return false;
    const struct sockaddr *to = is_four ? (const struct sockaddr *)&four : (const struct sockaddr *)&six;
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0, one = 1;
    if (fd < 0)
        return false;
    if (connect(fd, to, is_four ? sizeof four : sizeof six)) {
        struct pollfd wait[] = {{.fd = fd, .events = POLLOUT}, {.fd = p->wake[0], .events = POLLIN}};
        socklen_t len = sizeof error;
        if (errno != EINPROGRESS || poll(wait, 2, CONNECT_MS) <= 0 || !wait[0].revents ||
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) || error) {
            close(fd);
            return false;
        }
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    pthread_mutex_lock(&p->mutex);
    p->lines[0] = (connection){.fd = fd};
    pthread_mutex_unlock(&p->mutex);
    return true;
}

static bool connect_root(cake_heartbeat *p)
{
    char names[NAMES], *rest = names;
    memcpy(names, p->root_address.names, sizeof names);
    if (p->same_host && connect_address(p, "127.0.0.1"))
        return true;
    for (char *name; !p->stop && (name = strtok_r(rest, " ", &rest)) != NULL;)
        if (connect_address(p, name))
            return true;
    return false;
}

/* ---- the thread */

static int fill_polled(cake_heartbeat *p)
{
    int n = 0;
    p->polled[n++] = (struct pollfd){.fd = p->wake[0], .events = POLLIN};
    p->polled[n++] = (struct pollfd){.fd = p->listener, .events = POLLIN};
    for (int i = 0; i < p->n_pending; i++)
        p->polled[n++] = (struct pollfd){.fd = p->pending[i].fd, .events = POLLIN};
    for (int i = 0; i < p->n_connection; i++)
        p->polled[n++] = (struct pollfd){.fd = p->lines[i].dead ? -1 : p->lines[i].fd, .events = POLLIN};
    return n;
}

static void read_all(cake_heartbeat *p, double now)
{
    const struct pollfd *entries = p->polled + 2;
    for (int i = 0; i < p->n_connection; i++)
        if (entries[p->n_pending + i].revents)
            read_line(p, i, now);
    for (int i = 0; i < p->n_pending; i++)
        if (entries[i].revents)
            read_pending(p, &p->pending[i], now);
    if (p->polled[1].revents)
        accept_all(p);
}

static void beat(cake_heartbeat *p, double now)
{
    message m = message_of(p, BEAT);
    broadcast(p, &m);
    if (p->rank == 0)
        handle_message(&p->peers[0], &m, now);
}

/* After this process or its host was suspended: the pause does not count as silence. */
static void skip_pause(cake_heartbeat *p, double gap)
{
    for (int i = 0; i < p->n_connection; i++) {
        p->peers[i].heard += gap;
        p->peers[i].progress_at += gap;
        p->peers[i].returned_at += gap;
    }
}

static void *work(void *arg)
{
    cake_heartbeat *p = arg;
    for (int i = 1; p->rank && !connect_root(p);
         i++) /* when all connect at once, some attempts may be lost */
        if (p->stop || i == CONNECTS ||
            poll(&(struct pollfd){.fd = p->wake[0], .events = POLLIN}, 1, CONNECT_MS))
            return NULL;
    double last = cake_clock_now(), next = last;
    while (!p->stop) {
        double left = next - last;
        poll(p->polled, (nfds_t)fill_polled(p), left > 0 ? 1 + (int)(1e3 * left) : 0);
        double now = cake_clock_now();
        if (now - last > pause_s)
            skip_pause(p, now - last);
        last = now;
        read_all(p, now);
        if (now >= next) {
            beat(p, now);
            next = now + beat_s;
        }
        if (!atomic_load(&p->ending))
            p->owner.check(p->owner.self, p->peers, now);
        if (p->size > MANY_RANKS) /* read many messages per round */
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    message m = message_of(p, LEAVE);
    broadcast(p, &m);
    drain_sends(p);
    return NULL;
}

/* ---- opening */

/* Listens on any address of this host, at a port that the system chooses. */
static int open_listener(uint16_t *port)
{
    int off = 0;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_ANY)}};
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
        if (bind(fd, (struct sockaddr *)&six, sizeof six)) {
            close(fd);
            fd = -1;
        }
    }
    if (fd < 0) {
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && bind(fd, (struct sockaddr *)&four, sizeof four)) {
            close(fd);
            return -1;
        }
    }
    if (fd < 0)
        return -1;
    if (listen(fd, SOMAXCONN) || getsockname(fd, (struct sockaddr *)&at, &len)) {
        close(fd);
        return -1;
    }
    *port = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                           : ((struct sockaddr_in *)&at)->sin_port);
    return fd;
}

/* Raises the limit of open files to one connection per rank in addition to the program's own files. */
static void raise_limit(int size)
{
    struct rlimit limit;
    rlim_t needed = (rlim_t)size + SPARE_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= needed)
        return;
    limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void open_root(cake_heartbeat *p, const cake_comm *world, const char *names)
{
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    bool has_token = fd >= 0 && read(fd, p->root_address.token, sizeof p->root_address.token) ==
                                    (ssize_t)sizeof p->root_address.token;
    if (fd >= 0)
        close(fd);
    snprintf(p->root_address.host, sizeof p->root_address.host, "%s", world->host);
    snprintf(p->root_address.names, sizeof p->root_address.names, "%s", names);
    raise_limit(world->size);
    p->listener = has_token ? open_listener(&p->root_address.port) : -1;
    if (p->listener < 0)
        p->root_address.port = 0;
}

static void free_heartbeat(cake_heartbeat *p)
{
    for (int i = 0; i < p->n_connection; i++)
        if (p->lines[i].fd >= 0)
            close(p->lines[i].fd);
    for (int i = 0; i < p->n_pending; i++)
        if (p->pending[i].fd >= 0)
            close(p->pending[i].fd);
    if (p->listener >= 0)
        close(p->listener);
    if (p->wake[0] >= 0) {
        close(p->wake[0]);
        close(p->wake[1]);
    }
    free(p->lines);
    free(p->pending);
    free(p->peers);
    free(p->polled);
    free(p);
}

cake_heartbeat *cake_heartbeat_open(const cake_comm *world, const char *names,
                                    const cake_heartbeat_owner *owner)
{
    cake_heartbeat *p = cake_alloc(1, sizeof *p);
    *p = (cake_heartbeat){.owner = *owner,
                          .rank = world->rank,
                          .size = world->size,
                          .n_connection = world->rank ? 1 : world->size,
                          .n_pending = world->rank ? 0 : world->size + MAX_STRANGERS,
                          .listener = -1,
                          .wake = {-1, -1},
                          .mutex = PTHREAD_MUTEX_INITIALIZER};
    p->lines = cake_alloc((size_t)p->n_connection, sizeof *p->lines);
    p->peers = cake_alloc((size_t)p->n_connection, sizeof *p->peers);
    p->pending = cake_alloc((size_t)p->n_pending, sizeof *p->pending);
    p->polled = cake_alloc((size_t)p->n_connection + (size_t)p->n_pending + 2, sizeof *p->polled);
    for (int i = 0; i < p->n_connection; i++)
        p->lines[i].fd = -1;
    for (int i = 0; i < p->n_pending; i++)
        p->pending[i].fd = -1;
    if (!world->rank)
        open_root(p, world, names);
    cake_comm_bcast(world, &p->root_address, sizeof p->root_address);
    p->same_host = !strcmp(world->host, p->root_address.host);
    if (!p->root_address.port || pipe2(p->wake, O_CLOEXEC | O_NONBLOCK) ||
        !cake_thread_start(&p->thread, STACK, work, p)) {
        cake_log(CAKE_INFO, "link",
                 "no heartbeat between ranks: if one dies, only the launcher can end the others");
        free_heartbeat(p);
        return NULL;
    }
    current = p;
    cake_comm_before_abort(cake_heartbeat_send_failed);
    return p;
}

void cake_heartbeat_close(cake_heartbeat *p)
{
    if (!p)
        return;
    current = NULL;
    cake_comm_before_abort(NULL);
    p->stop = true;
    if (write(p->wake[1], "", 1) < 0)
        p->stop = true; /* the thread checks this twice a second */
    pthread_join(p->thread, NULL);
    free_heartbeat(p);
}

static bool has_root(cake_heartbeat *p)
{
    pthread_mutex_lock(&p->mutex);
    bool connected = p->lines[0].fd >= 0 && !p->lines[0].dead;
    pthread_mutex_unlock(&p->mutex);
    return connected;
}

void cake_heartbeat_send_failed(int status)
{
    enum { PATIENCE = 200 }; /* hundredths of a second */
    cake_heartbeat *p = current;
    /* Peers that receive the last message end, and some launchers then kill this process. */
    cake_stderr_wait_read();
    if (!p)
        return;
    atomic_store(&p->ending, true);
    message m = message_of(p, FAILED);
    m.status = status;
    broadcast(p, &m);
    drain_sends(p);
    /* Rank 0 closes its files first; its last message then ends this process. */
    for (int i = 0; p->rank && i < PATIENCE && has_root(p); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}
