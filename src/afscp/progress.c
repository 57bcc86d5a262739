/* SPDX-License-Identifier: BSD-2-Clause */
/* The progress line: amount, rate, time left. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"
#include "program/message.h"
#include "program/number.h"
#include "program/report.h"
#include "afscp/progress.h"

#define SHOW_NS 200000000u

void progress_start(struct progress *p, bool on, bool many)
{
	memset(p, 0, sizeof(*p));
	p->on = on;
	p->many = many;
	p->start_ns = p->shown_ns = monotonic_ns();
}

static void format_left(char *text, size_t size, uint64_t seconds)
{
	if (seconds >= 3600)
		snprintf(text, size, "%u:%02u:%02u left", (unsigned)(seconds / 3600),
			 (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
	else
		snprintf(text, size, "%u:%02u left", (unsigned)(seconds / 60),
			 (unsigned)(seconds % 60));
}

char *progress_line(char *text, size_t size, const char *label, uint64_t done, uint64_t total,
		    double rate)
{
	char amount[32], left[32] = "", share[8] = "";
	size_t length = strlen(label);
	const char *tail = length > 40 ? label + length - 37 : label;

	tools_format_size(amount, sizeof(amount), done);
	if (total) {
		unsigned percent =
			done >= total ? 100 : (unsigned)((double)done * 100 / (double)total);

		snprintf(share, sizeof(share), "%3u%% ", percent);
		if (rate > 0 && done < total && (double)(total - done) / rate < 360000)
			format_left(left, sizeof(left),
				    (uint64_t)((double)(total - done) / rate + 0.5));
	}
	snprintf(text, size, "%s%s  %s%s  %.1f MB/s  %s", length > 40 ? "..." : "", tail, share,
		 amount, rate / 1e6, left);
	return text;
}

/* Columns of the terminal: a longer line could not be replaced. */
static size_t width_of_terminal(void)
{
	struct winsize window;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 10)
		return window.ws_col - 1u;
	return 79;
}

char *progress_count(char *text, size_t size, uint64_t files, uint64_t all)
{
	if (all)
		snprintf(text, size, "%llu of %llu files  ", (unsigned long long)files,
			 (unsigned long long)(all > files ? all : files));
	else
		snprintf(text, size, "%llu files  ", (unsigned long long)files);
	return text;
}

/* Show the numbers of files and the current one, or only the latter. */
static void show_progress(const struct progress *p, const char *label, uint64_t done,
			  uint64_t total, double rate, uint64_t files, uint64_t all_files)
{
	size_t width = width_of_terminal(), used;
	char line[256], count[64] = "";

	if (p->many)
		progress_count(count, sizeof(count), files, all_files);
	used = (size_t)snprintf(line, sizeof(line), "%s", count);
	progress_line(line + used, sizeof(line) - used, label, done, total, rate);
	/* A narrow terminal shortens the name, not the numbers. */
	if (strlen(line) > width) {
		size_t over = strlen(line) - width, length = strlen(label);
		size_t kept = length > 40 ? 40 : length;

		label += length - (kept > over ? kept - over : 0);
		progress_line(line + used, sizeof(line) - used, label, done, total, rate);
	}
	if (strlen(line) > width)
		line[width] = 0;
	tools_harmless(line);
	tools_progress(line);
}

void progress_update(struct progress *p, const char *label, uint64_t done, uint64_t total,
		     uint64_t files, uint64_t all_files)
{
	uint64_t now;
	double seconds, rate;

	if (!p->on)
		return;
	now = monotonic_ns();
	if (now - p->shown_ns < SHOW_NS)
		return;
	seconds = (double)(now - p->shown_ns) / 1e9;
	rate = done >= p->shown_bytes ? (double)(done - p->shown_bytes) / seconds : 0;
	p->rate = p->rate > 0 ? 0.8 * p->rate + 0.2 * rate : rate;
	p->shown_ns = now;
	p->shown_bytes = done;
	show_progress(p, label, done, total, p->rate, files, all_files);
}

void progress_end(struct progress *p, const char *label, uint64_t done, bool complete,
		  uint64_t files)
{
	uint64_t ns = monotonic_ns() - p->start_ns;

	if (p->on && complete)
		show_progress(p, label, done, done, ns ? (double)done * 1e9 / (double)ns : 0, files,
			      0);
	if (p->on)
		tools_progress(NULL);
}
