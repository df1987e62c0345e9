/* SPDX-License-Identifier: MIT */
#include "device/nccl.h"

#include "tests/fake/fake_runtime.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * A stand-in for NCCL that moves memory between processes of one host. It lets
 * machines without GPUs test our side of NCCL. Each message is a file in a
 * folder named by the communicator id. Memory is copied after the stream's
 * queued work. If $FAKE_NCCL_REFUSES is set, no communicator can be made.
 */

#define MAX_RANKS 8
#define MAX_GROUP 128
enum { INVALID_ARGUMENT = 4, SYSTEM_ERROR = 2 };

struct nccl_comm {
    char folder[128];
    int rank, n_ranks;
    unsigned n_sent[MAX_RANKS], n_received[MAX_RANKS];
};

struct message {
    struct nccl_comm *comm;
    const void *src; /* NULL if the message is received */
    void *dst;
    size_t n;
    int peer;
    void *stream;
};

/* Group state is per thread, as in the real NCCL. */
static _Thread_local struct {
    struct message messages[MAX_GROUP];
    int n, depth;
} group;

int ncclGetVersion(int *version);
int ncclGetUniqueId(struct nccl_id *id);
int ncclCommInitRank(struct nccl_comm **comm, int n_ranks, struct nccl_id id,
                     int rank);
int ncclCommDestroy(struct nccl_comm *comm);
int ncclCommGetAsyncError(struct nccl_comm *comm, int *status);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclSend(const void *d_src, size_t n, int type, int to,
             struct nccl_comm *comm, void *stream);
int ncclRecv(void *d_dst, size_t n, int type, int from, struct nccl_comm *comm,
             void *stream);
const char *ncclGetErrorString(int status);
const char *ncclGetLastError(struct nccl_comm *comm);

int ncclGetVersion(int *version)
{
    *version = 22809;
    return NCCL_SUCCESS;
}

int ncclGetUniqueId(struct nccl_id *id)
{
    snprintf(id->bytes, sizeof id->bytes, "/tmp/fake_nccl_XXXXXX");
    if (getenv("FAKE_NCCL_REFUSES"))
        return NCCL_SUCCESS;
    return mkdtemp(id->bytes) ? NCCL_SUCCESS : SYSTEM_ERROR;
}

int ncclCommInitRank(struct nccl_comm **comm, int n_ranks, struct nccl_id id,
                     int rank)
{
    if (!comm || !*id.bytes || n_ranks > MAX_RANKS ||
        getenv("FAKE_NCCL_REFUSES"))
        return INVALID_ARGUMENT;
    *comm = calloc(1, sizeof **comm);
    if (!*comm)
        return SYSTEM_ERROR;
    memcpy((*comm)->folder, id.bytes, sizeof id.bytes);
    (*comm)->rank = rank;
    (*comm)->n_ranks = n_ranks;
    return NCCL_SUCCESS;
}

/* rmdir succeeds only for the last rank, when the folder is empty. */
int ncclCommDestroy(struct nccl_comm *comm)
{
    rmdir(comm->folder);
    free(comm);
    return NCCL_SUCCESS;
}

int ncclCommGetAsyncError(struct nccl_comm *comm, int *status)
{
    (void)comm;
    *status = NCCL_SUCCESS;
    return NCCL_SUCCESS;
}

static void name_file(char *name, size_t size, const struct nccl_comm *comm,
                      int from, int to, unsigned number)
{
    snprintf(name, size, "%s/%d.%d.%u", comm->folder, from, to, number);
}

static int send_one(const struct message *message, const char *data)
{
    struct nccl_comm *comm = message->comm;
    char name[256], draft[264];
    size_t n_written;
    FILE *fp;

    name_file(name, sizeof name, comm, comm->rank, message->peer,
              comm->n_sent[message->peer]++);
    snprintf(draft, sizeof draft, "%s.draft", name);
    fp = fopen(draft, "wbe");
    if (!fp)
        return SYSTEM_ERROR;
    n_written = fwrite(data, 1, message->n, fp);
    if (fclose(fp) || n_written != message->n || rename(draft, name))
        return SYSTEM_ERROR;
    return NCCL_SUCCESS;
}

/* Receives one message. It is an error if the message does not have the size
 * that the receiver expects. */
static int receive_one(const struct message *message, char *data)
{
    const struct timespec moment = {.tv_nsec = 100000};
    struct nccl_comm *comm = message->comm;
    char name[256];
    FILE *fp = NULL;
    bool fits;

    name_file(name, sizeof name, comm, message->peer, comm->rank,
              comm->n_received[message->peer]++);
    for (int i = 0; i < 100000 && !fp; i++) {
        fp = fopen(name, "rbe");
        if (!fp)
            nanosleep(&moment, NULL);
    }
    if (!fp)
        return SYSTEM_ERROR;
    fits = fread(data, 1, message->n, fp) == message->n && fgetc(fp) == EOF;
    fclose(fp);
    unlink(name);
    return fits ? NCCL_SUCCESS : INVALID_ARGUMENT;
}

static int move_one(const struct message *message,
                    const struct runtime *runtime)
{
    char *data = malloc(message->n);
    int status = SYSTEM_ERROR;

    if (!data || (runtime->wait && runtime->wait(message->stream)))
        goto out;
    if (message->src)
        status = runtime_copy(runtime, data, message->src, message->n)
                     ? SYSTEM_ERROR
                     : send_one(message, data);
    else
        status = receive_one(message, data);
    if (!status && message->dst)
        status = runtime_copy(runtime, message->dst, data, message->n);
out:
    free(data);
    return status;
}

int ncclGroupStart(void)
{
    group.depth++;
    return NCCL_SUCCESS;
}

int ncclGroupEnd(void)
{
    const struct runtime runtime = runtime_of_program();
    int status = NCCL_SUCCESS;

    if (!group.depth || --group.depth)
        return INVALID_ARGUMENT;
    for (int i = 0; i < group.n && !status; i++)
        if (group.messages[i].src)
            status = move_one(&group.messages[i], &runtime);
    for (int i = 0; i < group.n && !status; i++)
        if (!group.messages[i].src)
            status = move_one(&group.messages[i], &runtime);
    group.n = 0;
    return status;
}

static int add(struct message message, int type)
{
    /* outside a group, a message to oneself would wait forever */
    if (!group.depth || group.n == MAX_GROUP || type != NCCL_BYTES ||
        !message.n || message.peer < 0 || message.peer >= message.comm->n_ranks)
        return INVALID_ARGUMENT;
    group.messages[group.n++] = message;
    return NCCL_SUCCESS;
}

int ncclSend(const void *d_src, size_t n, int type, int to,
             struct nccl_comm *comm, void *stream)
{
    return add((struct message){comm, d_src, NULL, n, to, stream}, type);
}

int ncclRecv(void *d_dst, size_t n, int type, int from, struct nccl_comm *comm,
             void *stream)
{
    return add((struct message){comm, NULL, d_dst, n, from, stream}, type);
}

const char *ncclGetErrorString(int status)
{
    return status == INVALID_ARGUMENT ? "invalid argument" : "system error";
}

const char *ncclGetLastError(struct nccl_comm *comm)
{
    (void)comm;
    return "";
}
