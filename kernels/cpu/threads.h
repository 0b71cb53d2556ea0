// Work for all cores of a call: parts taken from a counter, so that a slow core holds up nobody.
#pragma once

typedef void (*work)(const void* arguments, int part, int thread);

// Run ``body`` for parts 0 to ``parts`` - 1 on up to ``threads`` threads, the caller's among them; ``thread`` numbers them from
// 0. Returns when all parts are done. Where another caller has the workers, or there are none, the caller does it all.
void in_parts(work body, const void* arguments, int parts, int threads);
