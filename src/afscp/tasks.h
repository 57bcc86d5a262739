/* SPDX-License-Identifier: BSD-2-Clause */
/* Small pieces of work that threads do in any order, some at a time. */
#ifndef COPY_TASKS_H
#define COPY_TASKS_H

struct tasks;

/* NULL: no memory; then each piece is done at once. */
struct tasks *tasks_open(void);
/* Waits while very many are left. No piece may add others. */
void tasks_add(struct tasks *tasks, void (*work)(void *arg), void *arg);
/* Until none is left. */
void tasks_wait(struct tasks *tasks);
/* The same, and free it. */
void tasks_close(struct tasks *tasks);

#endif
