// Calls the kernels of a shared library as it is told on standard input, and answers on standard output: another CPU's library
// runs so in an emulator (apart.py). Each array lies before a page that nobody may touch, so that whoever reads or writes
// beyond its end is stopped.
//
// A call: its name in 32 bytes; the number of arguments; each argument as a kind ('i', 'f', 'p') and 8 bytes: a whole number, a
// double, or the bytes of an array, which follow. The answer: 8 bytes of result, then all arrays in order.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_ARGUMENTS 20

typedef struct {
    char kind;
    int64_t whole;
    double real;
    char *array, *pages;
    size_t bytes, mapped;
} argument;

static argument a[MOST_ARGUMENTS];

static void fail(const char* why) {
    fprintf(stderr, "play: %s\n", why);
    exit(2);
}

static void take(void* to, size_t bytes) {
    if (fread(to, 1, bytes, stdin) != bytes) fail("a call that ends early");
}

static void give(const void* from, size_t bytes) {
    if (fwrite(from, 1, bytes, stdout) != bytes) fail("nobody takes the answer");
}

static void place(argument* one) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (one->bytes + page - 1) / page * page;
    one->mapped = whole + page;
    one->pages = mmap(0, one->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (one->pages == MAP_FAILED || mprotect(one->pages + whole, page, PROT_NONE)) fail("no memory");
    one->array = one->pages + whole - one->bytes;
    take(one->array, one->bytes);
}

#define P(at) ((void*)a[at].array)
#define I(at) ((int)a[at].whole)
#define L(at) ((long)a[at].whole)
#define F(at) ((float)a[at].real)

static int64_t call(const char* name, void* kernel) {
#define IS(text) (!strcmp(name, "minfer_" text))
    int64_t result = 0;
    if (IS("mmv"))
        ((void (*)(int, void*, void*, void*, int, int, int, int))kernel)(I(0), P(1), P(2), P(3), I(4), I(5), I(6), I(7));
    else if (IS("dequantise"))
        ((void (*)(int, void*, void*, long, int))kernel)(I(0), P(1), P(2), L(3), I(4));
    else if (IS("pack"))
        ((void (*)(void*, void*, int, int, int))kernel)(P(0), P(1), I(2), I(3), I(4));
    else if (IS("integer_product"))
        ((void (*)(int, void*, void*, void*, void*, int, int, int, int))kernel)(
            I(0), P(1), P(2), P(3), P(4), I(5), I(6), I(7), I(8)
        );
    else if (IS("packed_bytes") || IS("panel_bytes"))
        result = ((long (*)(int, int))kernel)(I(0), I(1));
    else if (IS("integers_fast"))
        result = ((int (*)(void))kernel)();
    else if (IS("rms_norm"))
        ((void (*)(void*, void*, void*, long, int, float, int))kernel)(P(0), P(1), P(2), L(3), I(4), F(5), I(6));
    else if (IS("rope"))
        ((void (*)(void*, void*, void*, int, int, int, int, int, int))kernel)(
            P(0), P(1), P(2), I(3), I(4), I(5), I(6), I(7), I(8)
        );
    else if (IS("gated_activation"))
        ((void (*)(void*, void*, long, int, int))kernel)(P(0), P(1), L(2), I(3), I(4));
    else if (IS("attention_floats"))
        result = ((long (*)(int, int, int, int, int))kernel)(I(0), I(1), I(2), I(3), I(4));
    else if (IS("attention"))
        ((void (*)(
            void*, void*, void*, void*, void*, long, long, int, int, int, int, int, int, int, float, float, int
        ))kernel)(
            P(0), P(1), P(2), P(3), P(4), L(5), L(6), I(7), I(8), I(9), I(10), I(11), I(12), I(13), F(14), F(15), I(16)
        );
    else if (IS("add"))
        ((void (*)(void*, void*, long, int))kernel)(P(0), P(1), L(2), I(3));
    else
        fail("a kernel that is not known here");
    return result;
}

int main(int count, char** words) {
    void* library = count == 2 ? dlopen(words[1], RTLD_NOW) : 0;
    if (!library) fail(count == 2 ? dlerror() : "give it one library");
    for (;;) {
        char name[32];
        int64_t arguments;
        if (fread(name, 1, sizeof name, stdin) != sizeof name) return 0;
        take(&arguments, sizeof arguments);
        if (arguments > MOST_ARGUMENTS) fail("too many arguments");
        for (int i = 0; i < arguments; i++) {
            take(&a[i].kind, 1);
            take(a[i].kind == 'f' ? (void*)&a[i].real : (void*)&a[i].whole, 8);
            a[i].bytes = (size_t)a[i].whole;
            if (a[i].kind == 'p') place(&a[i]);
        }
        void* kernel = dlsym(library, name);
        if (!kernel) fail(dlerror());
        int64_t result = call(name, kernel);
        give(&result, sizeof result);
        for (int i = 0; i < arguments; i++)
            if (a[i].kind == 'p') {
                give(a[i].array, a[i].bytes);
                munmap(a[i].pages, a[i].mapped);
            }
        fflush(stdout);
    }
}
