/* SPDX-License-Identifier: BSD-2-Clause */
/* What the threads of a run do together: retries and reports. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxafs/daemon.h>

#include "common/clock.h"
#include "common/held.h"
#include "program/message.h"
#include "program/report.h"
#include "afscp/pathuse.h"
#include "afscp/run.h"

void run_set_interrupt(struct run *run, bool (*fn)(void *arg, int number), void *arg)
{
	pthread_mutex_lock(&run->lock);
	run->on_interrupt = fn;
	run->on_interrupt_arg = arg;
	pthread_mutex_unlock(&run->lock);
}

enum copy_result copy_report_tree(struct run *run, const char *label, uint64_t files,
				  uint64_t failed, enum copy_result rc)
{
	files = atomic_load(&run->files) - files;
	failed = atomic_load(&run->failed) - failed;
	if (rc == COPY_GOOD && !failed)
		return rc;
	if (run_interrupted(run))
		tools_error("%s: %llu files copied, the rest was not attempted%s", label,
			    (unsigned long long)files,
			    run->set.resume ? "" : "; with -C the next run leaves them out");
	else
		tools_error("%s: %llu files copied, %llu objects failed%s", label,
			    (unsigned long long)files, (unsigned long long)failed,
			    rc == COPY_STOP ? ", the rest was not attempted" : "");
	return rc == COPY_GOOD ? COPY_FAILED : rc;
}

static void note_result(struct run *run, const char *label, const char *result, uint64_t bytes)
{
	if (!run->list)
		return;
	pthread_mutex_lock(&run->list_lock);
	json_array_append_new(run->list,
			      json_pack("{s:o, s:s, s:I}", "name", tools_json_text(label), "result",
					result, "bytes", (json_int_t)bytes));
	pthread_mutex_unlock(&run->list_lock);
}

bool copy_tells_names(const struct run *run)
{
	return run->set.verbose && !run->list &&
	       !(run->destination && strcmp(run->destination, "-") == 0);
}

void copy_done(struct run *run, const char *label, uint64_t bytes)
{
	char *text;

	atomic_fetch_add(&run->files, 1);
	note_result(run, label, "copied", bytes);
	if (!copy_tells_names(run))
		return;
	text = strdup(label);
	if (text)
		printf("%s\n", isatty(STDOUT_FILENO) ? tools_harmless(text) : text);
	free(text);
}

void copy_skip(struct run *run, const char *label, uint64_t bytes)
{
	atomic_fetch_add(&run->left_out, bytes);
	atomic_fetch_add(&run->skipped, 1);
	note_result(run, label, "skipped", bytes);
}

/* `all` less a part of it, at least 1 so that it stays known; 0: unknown. */
static uint64_t subtract_known(uint64_t all, uint64_t part)
{
	return all == 0 || all > part ? all - (all ? part : 0) : 1;
}

void copy_progress(struct run *run, const char *label)
{
	/* Another thread shows it. */
	if (pthread_mutex_trylock(&run->progress_lock) != 0)
		return;
	progress_update(&run->progress, label, atomic_load(&run->bytes),
			subtract_known(atomic_load(&run->total), atomic_load(&run->left_out)),
			atomic_load(&run->files),
			subtract_known(atomic_load(&run->total_files), atomic_load(&run->skipped)));
	pthread_mutex_unlock(&run->progress_lock);
}

void run_counters(const struct run *run, struct counters *sum)
{
	if (!run->afs || counters_read(sum, rxafs_endpoint(run->afs)) < 0)
		memset(sum, 0, sizeof(*sum));
}

json_t *copy_make_report(struct run *run, const struct tools_usage *from,
			 const struct counters *before)
{
	struct counters stats;
	struct tools_usage usage;
	json_t *report = json_object();

	tools_usage_now(&usage);
	usage = tools_usage_between(from, &usage);
	run_counters(run, &stats);
	stats = tools_stats_between(before, &stats);
	tools_report_fill(report, run->bytes, counters_get(&stats, "calls_started"), &usage, &stats,
			  NULL);
	json_object_set_new(report, "files", json_integer((json_int_t)run->files));
	json_object_set_new(report, "skipped", json_integer((json_int_t)run->skipped));
	json_object_set_new(report, "failed", json_integer((json_int_t)run->failed));
	path_uses_report(run, report);
	json_object_set_new(report, "effective", tools_effective_json(rxafs_endpoint(run->afs)));
	json_object_set_new(report, "transport", tools_stats_json(&stats));
	json_object_set_new(report, "machine", tools_facts_json());
	return report;
}

void copy_print_report(json_t *report)
{
	tools_report_print("copied", report);
	path_uses_print(report);
	json_decref(report);
}

void copy_report(struct run *run, const struct tools_usage *from, const struct counters *before)
{
	json_t *report = copy_make_report(run, from, before);

	if (!run->set.json) {
		copy_print_report(report);
		return;
	}
	json_object_set(report, "objects", run->list);
	json_object_set(report, "errors", run->errors);
	tools_json_print(report);
}

/* ---- retries: servers may restart or not answer, volumes may be busy or move ---- */

#define PAUSE_MS     200 /* before the second round; doubled each time */
#define PAUSE_MAX_MS 5000

/* Wait. False: interrupted by a signal. */
static bool pause_run(struct run *run, unsigned ms)
{
	uint64_t until = monotonic_ns() + (uint64_t)ms * 1000000;

	pthread_mutex_lock(&run->lock);
	while (!atomic_load(&run->interrupted) && monotonic_ns() < until)
		monotonic_wait(&run->wake, &run->lock, until);
	pthread_mutex_unlock(&run->lock);
	return !atomic_load(&run->interrupted);
}

/* Whether no other thread has said within that time that it retries for as long. */
static bool first_to_tell(struct run *run, uint64_t now, uint64_t ms)
{
	uint64_t last = atomic_load(&run->told_ns);

	return (last == 0 || now - last > ms * 1000000) &&
	       atomic_compare_exchange_strong(&run->told_ns, &last, now);
}

/* Waits before each round except the first. */
bool run_wait_round(struct run *run, struct outage *o, const char *text, uint64_t ms)
{
	uint64_t now = monotonic_ns();

	if (!o->since_ns) {
		o->since_ns = now;
		o->pause_ms = PAUSE_MS;
		if (ms == 0)
			return false;
		if (!run->set.quiet && first_to_tell(run, now, ms))
			tools_error("%s; retrying for %llu s", text,
				    (unsigned long long)(ms + 999) / 1000);
	}
	if (now - o->since_ns >= ms * 1000000)
		return false;
	if (o->tries++ == 0)
		return true;
	if (!pause_run(run, o->pause_ms))
		return false;
	o->pause_ms = 2 * o->pause_ms < PAUSE_MAX_MS ? 2 * o->pause_ms : PAUSE_MAX_MS;
	return true;
}

char *copy_join_label(const char *label, const char *name)
{
	size_t length = strlen(label);
	char *path;

	if (asprintf(&path, "%s%s%s", label, length && label[length - 1] == '/' ? "" : "/", name) >=
	    0)
		return path;
	tools_error("no memory");
	return NULL;
}
