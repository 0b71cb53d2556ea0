// Worker threads that wait for work by spinning for a moment, then asleep: between two operations of a decoded token there
// are some 10 us, and waking a thread takes longer than that.
#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "vectors.h"

#define MOST_THREADS 64
#define SPINS 4000  // of about 20 ns

typedef struct {
    work body;
    const void* arguments;
    int parts, threads;
} job;

typedef struct {
    int thread;
    unsigned seen;  // the generation when it was started
} start_of_worker;

static pthread_mutex_t one_caller = PTHREAD_MUTEX_INITIALIZER, sleeping = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static job current;
static atomic_uint generation;  // of ``current``: every worker answers each new one, also where it has nothing to do in it
static atomic_int next_part, unanswered, sleepers;
static int started;

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void take_parts(const job* what, int thread) {
    for (int part; (part = atomic_fetch_add(&next_part, 1)) < what->parts;) what->body(what->arguments, part, thread);
}

static void* worker(void* argument) {
    const start_of_worker* start = argument;
    unsigned seen = start->seen;
    for (;;) {
        for (int spin = 0; spin < SPINS && atomic_load(&generation) == seen; spin++) pause_briefly();
        if (atomic_load(&generation) == seen) {
            pthread_mutex_lock(&sleeping);
            atomic_fetch_add(&sleepers, 1);
            while (atomic_load(&generation) == seen) pthread_cond_wait(&wake, &sleeping);
            atomic_fetch_sub(&sleepers, 1);
            pthread_mutex_unlock(&sleeping);
        }
        seen = atomic_load(&generation);
        if (start->thread < current.threads) take_parts(&current, start->thread);
        atomic_fetch_sub(&unanswered, 1);
    }
    return 0;
}

// A forked child has none of its parent's threads, and perhaps a lock of one of them.
static void forget_workers(void) {
    started = 0;
    atomic_store(&generation, 0);
    atomic_store(&sleepers, 0);
    one_caller = sleeping = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

static void start_workers(int wanted) {
    static start_of_worker starts[MOST_THREADS];
    static int registered;
    if (!registered) registered = !pthread_atfork(0, 0, forget_workers);
    for (; started < wanted; started++) {
        pthread_t thread;
        starts[started] = (start_of_worker){started + 1, atomic_load(&generation)};
        if (pthread_create(&thread, 0, worker, &starts[started])) break;
        pthread_detach(thread);
    }
}

void in_parts(work body, const void* arguments, int parts, int threads) {
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > parts) threads = parts;
    if (threads < 2 || pthread_mutex_trylock(&one_caller)) {
        for (int part = 0; part < parts; part++) body(arguments, part, 0);
        return;
    }
    start_workers(threads - 1);
    current = (job){body, arguments, parts, threads};
    atomic_store(&next_part, 0);
    atomic_store(&unanswered, started);
    atomic_fetch_add(&generation, 1);
    if (atomic_load(&sleepers)) {
        pthread_mutex_lock(&sleeping);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&sleeping);
    }
    take_parts(&current, 0);
    while (atomic_load(&unanswered)) pause_briefly();
    pthread_mutex_unlock(&one_caller);
}
