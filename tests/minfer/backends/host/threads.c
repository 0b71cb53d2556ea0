// Three callers give the workers jobs of 1 to 40 parts on 1 to 5 threads, some after a pause in which the workers fall asleep:
// each part must run once, before the call returns. Built with the thread sanitiser by test_cpu_kernels.py.
#include "threads.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MOST_PARTS 40

typedef struct {
    int* out;
    int round, threads;
} task;

static void one_part(const void* arguments, int part, int thread) {
    const task* t = arguments;
    if (thread >= t->threads) abort();
    t->out[part] += part + t->round;
}

static void* caller(void* number) {
    int id = (int)(intptr_t)number;
    for (int round = 0; round < 5000; round++) {
        int parts = 1 + (round * 7 + id) % MOST_PARTS, out[MOST_PARTS] = {0};
        task t = {out, round, 1 + (round + id) % 5};
        in_parts(one_part, &t, parts, t.threads);
        for (int i = 0; i < parts; i++)
            if (out[i] != i + round) {
                printf("round %d, part %d of %d: %d\n", round, i, parts, out[i]);
                exit(1);
            }
        if (round % 1000 == 0) usleep(2000);
    }
    return 0;
}

int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], 0, caller, (void*)(intptr_t)i)) return 2;
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    puts("each part once");
    return 0;
}
