/* SPDX-License-Identifier: BSD-2-Clause */
/* Small pieces of work that threads do in any order, some at a time. */
#ifndef COPY_TASKS_H
#define COPY_TASKS_H

struct tasks;

#define TASKS_THREADS 8	   /* for calls to servers */
#define TASKS_WAITING 1024 /* small ones */

/* `waiting`: pieces that no thread has begun. NULL, or no thread: each piece is done at once. */
struct tasks *tasks_open(unsigned threads, unsigned waiting);
/* Waits while that many wait. No piece may add others. */
void tasks_add(struct tasks *tasks, void (*work)(void *arg), void *arg);
/* Until none is left. */
void tasks_wait(struct tasks *tasks);
/* The same, and free it. */
void tasks_close(struct tasks *tasks);

#endif
