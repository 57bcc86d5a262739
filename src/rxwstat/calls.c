/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls that a program on this host lists at its metrics socket. */
#include <stdio.h>
#include <string.h>

#include "rxwstat/stat.h"

static const char *text_of_call(const json_t *call, const char *member)
{
	const char *text = json_string_value(json_object_get(call, member));

	return text ? text : "?";
}

double stat_call_number(const json_t *call, const char *member)
{
	return json_number_value(json_object_get(call, member));
}

static double bytes_of_call(const json_t *call)
{
	return stat_call_number(call, "bytes_sent") + stat_call_number(call, "bytes_received");
}

/* Several peers may share an address, so the ids of a call and its number count. */
static bool is_same_call(const json_t *a, const json_t *b)
{
	static const char *const members[] = {"epoch", "cid", "number"};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (stat_call_number(a, members[i]) != stat_call_number(b, members[i]))
			return false;
	return strcmp(text_of_call(a, "role"), text_of_call(b, "role")) == 0;
}

static const json_t *find_same_call(const json_t *calls, const json_t *call)
{
	const json_t *other;
	size_t i;

	json_array_foreach(calls, i, other) if (is_same_call(other, call)) return other;
	return NULL;
}

double stat_call_rate(const json_t *call, const struct stat_view *before)
{
	const json_t *old = before ? find_same_call(before->calls, call) : NULL;
	double seconds = old ? stat_call_number(call, "age_s") - stat_call_number(old, "age_s") : 0;

	if (seconds <= 0)
		return stat_call_number(call, "rate");
	return (bytes_of_call(call) - bytes_of_call(old)) / seconds;
}

void stat_take_calls(struct stat_view *v, const char *text)
{
	json_t *all = json_loads(text, 0, NULL), *call;
	const json_t *list = json_object_get(all, "calls");
	size_t i;

	if (json_is_array(list))
		v->calls = json_array();
	v->calls_left_out = (uint64_t)stat_call_number(all, "left_out");
	json_array_foreach(list, i, call) if (strcmp(text_of_call(call, "endpoint"), v->name) == 0)
		json_array_append(v->calls, call);
	json_decref(all);
}

void stat_call_line(const json_t *call, double rate, char *line, size_t size)
{
	char flow[64], windows[32];
	bool sends;

	if (!call) {
		snprintf(line, size, "%-24s %-4s %9s %13s %7s %8s %8s %8s %7s %7s %7s %s", "CALL",
			 "FLOW", "MB/s", "CWND/WINDOW", "FLIGHT", "PACE", "RTT ms", "LEAST", "LOST",
			 "AGAIN", "MARKED", "CONTROL");
		return;
	}
	sends = strcmp(text_of_call(call, "direction"), "sending") == 0;
	snprintf(windows, sizeof(windows), "%.0f/%.0f", stat_call_number(call, "cwnd"),
		 stat_call_number(call, "peer_window"));
	snprintf(flow, sizeof(flow), "%s %s", text_of_call(call, "controller"),
		 text_of_call(call, "phase"));
	snprintf(line, size, "%-24s %-4s %9.2f %13s %7.0f %8.2f %8.2f %8.2f %7.0f %7.0f %7.0f %s",
		 text_of_call(call, "peer"), sends ? "out" : "in", rate / 1e6, windows,
		 stat_call_number(call, "in_flight"), stat_call_number(call, "pacing_rate") / 1e6,
		 stat_call_number(call, "rtt_s") * 1e3, stat_call_number(call, "rtt_min_s") * 1e3,
		 stat_call_number(call, "lost"), stat_call_number(call, "retransmitted"),
		 stat_call_number(call, sends ? "marks_seen" : "marks_received"), flow);
}
