/* SPDX-License-Identifier: BSD-2-Clause */
/* Common parts of reports. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/clock.h"
#include "program/message.h"
#include "program/number.h"
#include "program/report.h"

void tools_usage_now(struct tools_usage *usage)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	usage->wall_ns = monotonic_ns();
	usage->user_s = (double)ru.ru_utime.tv_sec + (double)ru.ru_utime.tv_usec / 1e6;
	usage->sys_s = (double)ru.ru_stime.tv_sec + (double)ru.ru_stime.tv_usec / 1e6;
	usage->context_switches = (uint64_t)ru.ru_nvcsw + (uint64_t)ru.ru_nivcsw;
	usage->peak_rss = (uint64_t)ru.ru_maxrss * 1024;
}

struct tools_usage tools_usage_between(const struct tools_usage *from, const struct tools_usage *to)
{
	struct tools_usage d = {
		.wall_ns = to->wall_ns - from->wall_ns,
		.user_s = to->user_s - from->user_s,
		.sys_s = to->sys_s - from->sys_s,
		.context_switches = to->context_switches - from->context_switches,
		.peak_rss = to->peak_rss,
	};
	return d;
}

struct counters tools_stats_between(const struct counters *from, const struct counters *to)
{
	const struct rxw_counter *c;
	struct counters d = *to;

	for (size_t i = 0; i < COUNTERS_ROOM && (c = rxw_counter_at(i)); i++)
		if (c->kind == RXW_COUNTER_TOTAL)
			d.value[i] -= from->value[i];
	return d;
}

void tools_stats_add(struct counters *into, const struct counters *from)
{
	for (size_t i = 0; i < COUNTERS_ROOM; i++)
		into->value[i] += from->value[i];
}

/* All drops: by cause, and the kernel's. */
static uint64_t tools_stats_drops(const struct counters *stats)
{
	return counters_get(stats, "kernel_drops") + counters_sum(stats, "drops.");
}

/* Rx packets of all types, sent and received. */
static uint64_t tools_stats_packets(const struct counters *stats)
{
	return counters_sum(stats, "packets.");
}

/* First line of a small file, without its newline; 0 or -1. */
static int read_first_line(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	char *got;

	if (!f)
		return -1;
	got = fgets(text, (int)size, f);
	fclose(f);
	if (!got)
		return -1;
	text[strcspn(text, "\n")] = 0;
	return 0;
}

/* "model name" on most machines; others have another key or none. */
static void read_cpu_model(char *text, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[512];

	snprintf(text, size, "unknown");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');
		if (!colon || (strncmp(line, "model name", 10) != 0 &&
			       strncmp(line, "Model", 5) != 0 && strncmp(line, "cpu\t", 4) != 0))
			continue;
		colon += 1 + strspn(colon + 1, " \t");
		colon[strcspn(colon, "\n")] = 0;
		snprintf(text, size, "%s", colon);
		break;
	}
	fclose(f);
}

static json_t *list_mitigations(void)
{
	static const char folder[] = "/sys/devices/system/cpu/vulnerabilities";
	json_t *object = json_object();
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[512], text[256];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		/* "Not affected" entries are left out. */
		if (read_first_line(path, text, sizeof(text)) == 0 &&
		    strcmp(text, "Not affected") != 0)
			json_object_set_new(object, entry->d_name, json_string(text));
	}
	if (dir)
		closedir(dir);
	return object;
}

json_t *tools_facts_json(void)
{
	struct utsname name;
	char cpu[256];

	memset(&name, 0, sizeof(name));
	uname(&name);
	read_cpu_model(cpu, sizeof(cpu));
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:o}", "system", name.sysname, "kernel",
			 name.release, "machine", name.machine, "cpu", cpu, "cpus",
			 (int)sysconf(_SC_NPROCESSORS_ONLN), "mitigations", list_mitigations());
}

json_t *tools_config_json(const struct rxw_config *config)
{
	size_t count;
	const struct rxw_option *options = rxw_config_options(&count);
	json_t *object = json_object();

	for (size_t i = 0; object && i < count; i++) {
		char text[512];
		if (rxw_config_get(config, options[i].name, text, sizeof(text)) >= 0)
			json_object_set_new(object, options[i].name, json_string(text));
	}
	return object;
}

json_t *tools_effective_json(rxw_endpoint *endpoint)
{
	struct rxw_effective e = {.size = sizeof(e)};

	if (rxw_endpoint_effective(endpoint, &e) < 0)
		return NULL;
	return json_pack("{s:i, s:i, s:i, s:i, s:b, s:b, s:b, s:s, s:I, s:I}", "listeners",
			 (int)e.listeners, "batch", (int)e.batch, "window", (int)e.window, "mtu",
			 (int)e.mtu, "gso", e.gso, "gro", e.gro, "steered", e.steered, "io",
			 e.io ? e.io : "?", "rcvbuf", (json_int_t)e.rcvbuf, "sndbuf",
			 (json_int_t)e.sndbuf);
}

json_t *tools_stats_json(const struct counters *stats)
{
	static const char lock[] = "lock_contended.";
	json_t *object = json_object(), *locks = json_object();
	uint64_t packets = tools_stats_packets(stats);
	const struct rxw_counter *c;

	for (size_t i = 0; i < COUNTERS_ROOM && (c = rxw_counter_at(i)); i++) {
		json_object_set_new(object, c->name, json_integer((json_int_t)stats->value[i]));
		if (packets && !strncmp(c->name, lock, strlen(lock)))
			json_object_set_new(
				locks, c->name + strlen(lock),
				json_real((double)stats->value[i] * 1e6 / (double)packets));
	}
	json_object_set_new(object, "lock_contended_per_Mpackets", locks);
	return object;
}

static json_t *quantile_us(const struct tools_histogram *h, double q)
{
	return json_real((double)tools_histogram_quantile(h, q) / 1e3);
}

int tools_report_fill(json_t *object, uint64_t bytes, uint64_t calls,
		      const struct tools_usage *usage, const struct counters *stats,
		      const struct tools_histogram *latency)
{
	double seconds = (double)usage->wall_ns / 1e9, cpu = usage->user_s + usage->sys_s;
	int rc = 0;

#define PUT(key, value)	  rc |= json_object_set_new(object, key, value)
#define COUNT(key, value) PUT(key, json_integer((json_int_t)(value)))
	COUNT("bytes", bytes);
	PUT("seconds", json_real(seconds));
	PUT("MBps", json_real(seconds > 0 ? (double)bytes / 1e6 / seconds : 0));
	COUNT("calls", calls);
	PUT("calls_per_s", json_real(seconds > 0 ? (double)calls / seconds : 0));
	if (latency && latency->count) {
		PUT("p50_us", quantile_us(latency, 0.5));
		PUT("p99_us", quantile_us(latency, 0.99));
		PUT("p999_us", quantile_us(latency, 0.999));
		PUT("max_us", json_real((double)latency->max / 1e3));
		PUT("mean_us", json_real(tools_histogram_mean(latency) / 1e3));
	} else {
		/* The keys are always there, so that readers need no special case. */
		PUT("p50_us", json_null());
		PUT("p99_us", json_null());
		PUT("p999_us", json_null());
		PUT("max_us", json_null());
		PUT("mean_us", json_null());
	}
	PUT("cpu_user_s", json_real(usage->user_s));
	PUT("cpu_sys_s", json_real(usage->sys_s));
	PUT("cpu_s_per_GB", bytes ? json_real(cpu / ((double)bytes / 1e9)) : json_null());
	PUT("cpu_us_per_call", calls ? json_real(cpu * 1e6 / (double)calls) : json_null());
	COUNT("packets_sent", counters_get(stats, "packets.sent.data"));
	COUNT("packets_received", counters_get(stats, "packets.received.data"));
	COUNT("retransmitted", counters_get(stats, "retransmitted"));
	COUNT("acks_sent", counters_get(stats, "packets.sent.ack"));
	COUNT("acks_received", counters_get(stats, "packets.received.ack"));
	COUNT("syscalls_send", counters_get(stats, "syscalls.send"));
	COUNT("syscalls_recv", counters_get(stats, "syscalls.receive"));
	COUNT("context_switches", usage->context_switches);
	COUNT("drops", tools_stats_drops(stats));
	COUNT("peak_rss", usage->peak_rss);
#undef COUNT
#undef PUT
	return rc ? -1 : 0;
}

double tools_number_of(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

unsigned long long tools_count_of(const json_t *object, const char *name)
{
	return (unsigned long long)json_integer_value(json_object_get(object, name));
}

const char *tools_text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

void tools_report_print(const char *title, json_t *o)
{
	char size[32];

	printf("%s: %s in %.3f s, %.1f MB/s; %llu calls, %.1f calls/s\n", title,
	       tools_format_size(size, sizeof(size), tools_count_of(o, "bytes")),
	       tools_number_of(o, "seconds"), tools_number_of(o, "MBps"),
	       tools_count_of(o, "calls"), tools_number_of(o, "calls_per_s"));
	if (json_is_number(json_object_get(o, "p50_us")))
		printf("  latency   p50 %.1f us, p99 %.1f us, p99.9 %.1f us, max %.1f us\n",
		       tools_number_of(o, "p50_us"), tools_number_of(o, "p99_us"),
		       tools_number_of(o, "p999_us"), tools_number_of(o, "max_us"));
	printf("  CPU       %.3f s user, %.3f s system", tools_number_of(o, "cpu_user_s"),
	       tools_number_of(o, "cpu_sys_s"));
	if (tools_count_of(o, "bytes") >= 1000000)
		printf("; %.3f s per GB", tools_number_of(o, "cpu_s_per_GB"));
	printf("; %.2f us per call; %llu context switches\n", tools_number_of(o, "cpu_us_per_call"),
	       tools_count_of(o, "context_switches"));
	printf("  packets   %llu sent (%llu retransmitted), %llu received; ACKs %llu sent, %llu "
	       "received\n",
	       tools_count_of(o, "packets_sent"), tools_count_of(o, "retransmitted"),
	       tools_count_of(o, "packets_received"), tools_count_of(o, "acks_sent"),
	       tools_count_of(o, "acks_received"));
	printf("  system    calls %llu to send, %llu to receive; %llu drops; peak memory %s\n",
	       tools_count_of(o, "syscalls_send"), tools_count_of(o, "syscalls_recv"),
	       tools_count_of(o, "drops"),
	       tools_format_size(size, sizeof(size), tools_count_of(o, "peak_rss")));
}

/* Bytes of the character of UTF-8 at `text`, as jansson accepts it; 0: it is none. */
static size_t measure_json_char(const char *text)
{
	for (size_t length = 1; length <= 4 && text[length - 1]; length++) {
		json_t *one = json_stringn(text, length);

		json_decref(one);
		if (one)
			return length;
	}
	return 0;
}

json_t *tools_json_text(const char *bytes)
{
	json_t *json = json_string(bytes);
	char *text = json ? NULL : malloc(2 * strlen(bytes) + 1), *to = text;

	if (!text)
		return json;
	while (*bytes) {
		size_t length = measure_json_char(bytes);

		if (length) {
			memcpy(to, bytes, length);
			bytes += length;
			to += length;
		} else {
			*to++ = (char)(0xc0 | (unsigned char)*bytes >> 6);
			*to++ = (char)(0x80 | ((unsigned char)*bytes++ & 0x3f));
		}
	}
	*to = 0;
	json = json_string(text);
	free(text);
	return json;
}

int tools_json_print(json_t *object)
{
	int rc;

	if (!object)
		return tools_fail(-1, "no memory");
	/* A terminal would take orders from control characters beyond ASCII. */
	rc = json_dumpf(object, stdout,
			JSON_INDENT(2) | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0));
	if (rc == 0 && (putchar('\n') == EOF || fflush(stdout) != 0))
		rc = -1;
	if (rc < 0)
		tools_note_output();
	json_decref(object);
	return rc;
}

/* ---- the progress line: amount, rate, time left ---- */

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
