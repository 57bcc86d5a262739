/* SPDX-License-Identifier: BSD-2-Clause */
/* Moves of many volumes by several threads: their order, their lines and their totals. */
#include "rxvol/carry.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "program/message.h"
#include "program/number.h"
#include "program/report.h"

#define THREADS_MAX 16

struct carriers {
	const struct rxvol *rxvol;
	struct move_settings settings;
	struct carry_item *items;
	size_t count;
	pthread_mutex_t lock; /* covers what follows, and stdout */
	size_t next, done;
	uint64_t kib, start;
	struct carry_totals *totals;
};

static volatile sig_atomic_t stopped;

static void note_stop(int number)
{
	(void)number;
	stopped = 1;
}

struct cellside *carry_open_cell(const struct rxvol *rxvol)
{
	const struct cellside_options options = {
		.config = rxvol->move.config,
		.cell = rxvol->move.cell,
		.keytab = rxvol->move.keytab,
		.location = rxvol->move.location.items,
		.location_count = rxvol->move.location.count,
		.level = rxvol->move.level,
	};

	struct cellside *cell = cellside_open(&options);

	if (cell && cellside_probe(cell)) {
		cellside_close(cell);
		return NULL;
	}
	return cell;
}

const char *carry_plural(size_t count)
{
	return count == 1 ? "" : "s";
}

char *carry_size_text(char text[CARRY_SIZE], uint64_t kib)
{
	return tools_format_size(text, CARRY_SIZE, kib * 1024);
}

/* -- lines -- */

static void print_waiting(void *arg, const struct move_job *job, const char *text)
{
	struct carriers *all = arg;

	pthread_mutex_lock(&all->lock);
	if (!all->rxvol->json && !all->rxvol->quiet) {
		printf("%s: %s\n", job->name, text);
		fflush(stdout);
	}
	pthread_mutex_unlock(&all->lock);
}

static void print_moved(const struct carriers *all, const struct carry_item *item, uint64_t ns)
{
	char bytes[CARRY_SIZE], time[32], away[32];
	const struct move_result *result = &item->result;

	printf("[%zu of %zu] %s: ", all->done, all->count, item->job.name);
	if (result->dropped)
		printf("removed at the source; the target has a copy already");
	else if (!result->bytes)
		printf("the move of an earlier run is complete");
	else
		printf("moved, %s in %s", tools_format_size(bytes, sizeof(bytes), result->bytes),
		       tools_format_time(time, sizeof(time), ns));
	if (result->away_ns)
		printf(", not writable for %s",
		       tools_format_time(away, sizeof(away), result->away_ns));
	printf("\n");
	fflush(stdout);
}

static void show_item(struct carriers *all, const struct carry_item *item, uint64_t ns)
{
	uint64_t past = monotonic_ns() - all->start, left = 0;
	char time[32];

	if (!item->done) {
		tools_error("%s: %s", item->job.name, item->result.message);
		return;
	}
	if (all->rxvol->json || all->rxvol->quiet)
		return;
	print_moved(all, item, ns);
	for (size_t i = 0; i < all->count; i++)
		if (!all->items[i].begun)
			left += all->items[i].size_kib;
	/* Now and then, not for each of many small ones. */
	if (left && all->kib && all->done % 25 == 0)
		printf("about %s to go\n",
		       tools_format_time(time, sizeof(time), past / all->kib * left));
}

/* -- threads -- */

/* The next one, and how many others of the same entry follow. 0: there is none. */
static size_t take_items(struct carriers *all, struct carry_item **first)
{
	size_t count = 0;

	pthread_mutex_lock(&all->lock);
	if (!stopped && all->next < all->count) {
		*first = &all->items[all->next];
		do {
			all->items[all->next++].begun = true;
			count++;
		} while (all->next < all->count &&
			 all->items[all->next].job.rw == (*first)->job.rw);
	}
	pthread_mutex_unlock(&all->lock);
	return count;
}

static void carry_item_over(struct carriers *all, struct carry_item *item)
{
	uint64_t start = monotonic_ns();

	item->done = !move_volume(&all->settings, &item->job, &item->result);
	pthread_mutex_lock(&all->lock);
	all->done++;
	all->kib += item->size_kib;
	if (item->done) {
		all->totals->moved++;
		all->totals->bytes += item->result.bytes;
	} else {
		all->totals->failed++;
	}
	show_item(all, item, monotonic_ns() - start);
	pthread_mutex_unlock(&all->lock);
}

static void *run_carrier(void *arg)
{
	struct carriers *all = arg;
	struct carry_item *item = NULL;
	size_t count;

	while ((count = take_items(all, &item)))
		for (size_t i = 0; i < count; i++)
			carry_item_over(all, &item[i]);
	return NULL;
}

void carry_volumes(const struct rxvol *rxvol, struct cellside *cell, struct carry_item *items,
		   size_t count, struct carry_totals *totals)
{
	struct carriers all = {.rxvol = rxvol,
			       .settings = {.cell = cell,
					    .state = rxvol->move.state,
					    .take_over = rxvol->move.take_over,
					    .say = print_waiting},
			       .items = items,
			       .count = count,
			       .totals = totals,
			       .start = monotonic_ns()};
	struct sigaction stop = {.sa_handler = note_stop, .sa_flags = (int)SA_RESETHAND};
	pthread_t threads[THREADS_MAX];
	size_t started = 0;

	assert(rxvol->move.parallel && rxvol->move.parallel <= THREADS_MAX);
	*totals = (struct carry_totals){0};
	all.settings.arg = &all;
	pthread_mutex_init(&all.lock, NULL);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	while (started + 1 < rxvol->move.parallel && started + 1 < count &&
	       !pthread_create(&threads[started], NULL, run_carrier, &all))
		started++;
	run_carrier(&all);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_destroy(&all.lock);
	totals->left = (unsigned)(count - all.next);
	totals->ns = monotonic_ns() - all.start;
	if (totals->left)
		tools_error("stopped: %u volume%s not begun", totals->left,
			    totals->left == 1 ? " was" : "s were");
}

json_t *carry_json(const struct carry_item *item)
{
	char from[CELLSIDE_NAME], to[CELLSIDE_NAME], there[CELLSIDE_NAME], here[CELLSIDE_NAME];
	const struct move_result *result = &item->result;

	return json_pack(
		"{s:s, s:I, s:b, s:s, s:s, s:s, s:s, s:I, s:b, s:b, s:I, s:I, s:I, s:f, s:o}",
		"name", item->job.name, "id", (json_int_t)item->job.id, "replica",
		item->job.replica, "from", cellside_address_text(from, item->job.from.address),
		"from_partition", cellside_partition_text(there, item->job.from.partition), "to",
		cellside_address_text(to, item->job.to.address), "to_partition",
		cellside_partition_text(here, item->job.to.partition), "size_kib",
		(json_int_t)item->size_kib, "done", item->done, "resumed", result->resumed, "bytes",
		(json_int_t)result->bytes, "files", (json_int_t)result->files, "used_kib",
		(json_int_t)result->used_kib, "away_s", (double)result->away_ns / 1e9, "error",
		tools_json_text(result->message));
}
