// Worker threads that wait for work by spinning for a moment, then asleep: between two operations of a decoded token there
// are some 10 us, and waking a thread takes longer than that. The caller waits for parts, not for workers: one that the
// system keeps from running holds up nothing but a part that it has begun.
#include "threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "vectors.h"

#define MOST_THREADS 255
#define SPINS 4000  // of about 20 ns

typedef struct {
    work body;
    const void* arguments;
    int parts;
} job;

// What there is to take, in one word, so that who takes a part knows that it is one of ``current``: the job's number (24 bits),
// how many threads may take part (8 bits), parts that nobody has taken yet (32 bits). ``current`` is written only when all parts
// of the job before it are done, so whoever holds a part may read it.
static _Atomic uint64_t offer;
static job current;
static atomic_int done, sleepers;
static pthread_mutex_t one_caller = PTHREAD_MUTEX_INITIALIZER, sleeping = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static int started;

static uint64_t untaken(uint64_t seen) { return seen & 0xffffffff; }

static int is_for(uint64_t seen, int thread) { return untaken(seen) && thread < (int)(seen >> 32 & 0xff); }

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void take_parts(int thread) {
    for (uint64_t seen = atomic_load(&offer); is_for(seen, thread);) {
        if (!atomic_compare_exchange_weak(&offer, &seen, seen - 1)) continue;
        current.body(current.arguments, current.parts - (int)untaken(seen), thread);
        atomic_fetch_add(&done, 1);
        seen = atomic_load(&offer);
    }
}

static void* worker(void* number) {
    int thread = (int)(intptr_t)number;
    for (;;) {
        for (int spin = 0; spin < SPINS && !is_for(atomic_load(&offer), thread); spin++) pause_briefly();
        if (!is_for(atomic_load(&offer), thread)) {
            pthread_mutex_lock(&sleeping);
            atomic_fetch_add(&sleepers, 1);
            while (!is_for(atomic_load(&offer), thread)) pthread_cond_wait(&wake, &sleeping);
            atomic_fetch_sub(&sleepers, 1);
            pthread_mutex_unlock(&sleeping);
        }
        take_parts(thread);
    }
    return 0;
}

// A forked child has none of its parent's threads, and perhaps a lock of one of them.
static void forget_workers(void) {
    started = 0;
    atomic_store(&offer, 0);
    atomic_store(&sleepers, 0);
    one_caller = sleeping = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    wake = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

static void start_workers(int wanted) {
    static int registered;
    if (!registered) registered = !pthread_atfork(0, 0, forget_workers);
    for (; started < wanted; started++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, worker, (void*)(intptr_t)(started + 1))) break;
        pthread_detach(thread);
    }
}

void in_parts(work body, const void* arguments, int parts, int threads) {
    static uint64_t number;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > parts) threads = parts;
    if (threads < 2 || pthread_mutex_trylock(&one_caller)) {
        for (int part = 0; part < parts; part++) body(arguments, part, 0);
        return;
    }
    start_workers(threads - 1);
    current = (job){body, arguments, parts};
    atomic_store(&done, 0);
    atomic_store(&offer, ++number << 40 | (uint64_t)threads << 32 | (uint64_t)parts);
    if (atomic_load(&sleepers)) {
        pthread_mutex_lock(&sleeping);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&sleeping);
    }
    take_parts(0);
    while (atomic_load(&done) < parts) pause_briefly();
    pthread_mutex_unlock(&one_caller);
}
