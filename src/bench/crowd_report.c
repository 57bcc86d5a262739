/* SPDX-License-Identifier: BSD-2-Clause */
/* The report of a crowd: one line of JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/crowd_load.h"

static int compare_speeds(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The speeds of all clients, sorted: bytes if the clients were stopped, else 1/time. To be freed. */
static double *sort_speeds(const struct crowd_cell *cell)
{
	unsigned clients = cell->options->clients;
	double *speed = calloc(clients, sizeof(*speed));

	if (!speed)
		crowd_die("report", "no memory");
	for (unsigned i = 0; i < clients; i++)
		speed[i] = cell->over ? (double)cell->got[i].bytes
				      : 1e9 / (double)(cell->got[i].ended_ns - cell->from);
	qsort(speed, clients, sizeof(*speed), compare_speeds);
	return speed;
}

static void report_fairness(const struct crowd_cell *cell)
{
	unsigned clients = cell->options->clients, below = 0;
	double *speed = sort_speeds(cell), sum = 0, middle;
	uint64_t gap = 0;

	middle = (speed[(clients - 1) / 2] + speed[clients / 2]) / 2;
	for (unsigned i = 0; i < clients; i++) {
		sum += speed[i];
		below += speed[i] < middle / 2;
		gap = cell->got[i].gap_ns > gap ? cell->got[i].gap_ns : gap;
	}
	printf(", \"slowest_to_median\": %.4f, \"slowest_to_mean\": %.4f, \"below_half\": %u"
	       ", \"longest_gap_s\": %.3f",
	       middle > 0 ? speed[0] / middle : 0, sum > 0 ? speed[0] * clients / sum : 0, below,
	       (double)gap / 1e9);
	free(speed);
}

static void report_clients(const struct crowd_cell *cell)
{
	unsigned clients = cell->options->clients;

	printf(", \"client_bytes\": [");
	for (unsigned i = 0; i < clients; i++)
		printf("%s%" PRIu64, i ? ", " : "", cell->got[i].bytes);
	printf("], \"client_s\": [");
	for (unsigned i = 0; i < clients; i++)
		printf("%s%.4f", i ? ", " : "", (double)(cell->got[i].ended_ns - cell->from) / 1e9);
	printf("]");
}

static void report_status_calls(const struct crowd_cell *cell)
{
	const struct tools_histogram *h = cell->latency;

	printf(", \"status_calls\": %" PRIu64
	       ", \"status_p50_us\": %.1f, \"status_p99_us\": %.1f, \"status_max_us\": %.1f",
	       cell->calls, (double)tools_histogram_quantile(h, 0.5) / 1e3,
	       (double)tools_histogram_quantile(h, 0.99) / 1e3, (double)h->max / 1e3);
}

static void report_errors(const struct crowd_cell *cell)
{
	printf(", \"errors\": %u, \"first_error\": \"", cell->errors);
	for (const char *c = cell->why; *c; c++)
		putchar(*c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? ' ' : *c);
	printf("\"");
}

void crowd_report(const struct crowd_cell *cell)
{
	const struct crowd_options *options = cell->options;
	uint64_t bytes = 0;

	for (unsigned i = 0; i < options->clients; i++)
		bytes += cell->got[i].bytes;
	printf("{\"way\": \"%s\", \"clients\": %u, \"files\": %u, \"volume_bytes\": %" PRIu64
	       ", \"stopped\": %s, \"seconds\": %.6f, \"bytes\": %" PRIu64 ", \"MBps\": %.3f"
	       ", \"server_cpu_s\": %.6f, \"client_cpu_s\": %.6f",
	       options->way->name, options->clients, options->files, cell->volume,
	       cell->over ? "true" : "false", (double)cell->elapsed / 1e9, bytes,
	       (double)bytes * 1e3 / (double)cell->elapsed, cell->server, cell->mine);
	report_fairness(cell);
	report_status_calls(cell);
	report_errors(cell);
	report_clients(cell);
	printf("}\n");
}
