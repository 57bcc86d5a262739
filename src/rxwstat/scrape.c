/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics socket of a program on this host: its samples and its calls. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "rxwstat/stat.h"

#define MOST  (64u << 20) /* bytes of an answer */
#define FIRST 65536u
#define MS    1000000u

static int connect_to_socket(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(name.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(name.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&name, sizeof(name)) < 0) {
		int why = errno;

		close(fd);
		errno = why;
		return -1;
	}
	return fd;
}

/* Read until the other side closes. NULL with errno: no memory, too much, or not in time. */
static char *read_answer(int fd, uint64_t timeout_ms)
{
	uint64_t end = monotonic_ns() + timeout_ms * MS, now;
	size_t used = 0, room = FIRST;
	char *text = malloc(room);

	while (text && (now = monotonic_ns()) < end) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (poll(&p, 1, (int)((end - now) / MS) + 1) <= 0)
			continue;
		n = recv(fd, text + used, room - used - 1, 0);
		if (n <= 0) {
			text[used] = 0;
			return text;
		}
		used += (size_t)n;
		if (used + 1 == room) {
			char *more = room < MOST ? realloc(text, 2 * room) : NULL;

			if (!more)
				break;
			text = more;
			room *= 2;
		}
	}
	errno = text ? ETIMEDOUT : ENOMEM;
	free(text);
	return NULL;
}

char *stat_fetch(const char *path, const char *page, uint64_t timeout_ms, char *message,
		 size_t size)
{
	char request[64], *text = NULL, *body;
	int length = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n\r\n", page);
	int fd = connect_to_socket(path);

	if (fd >= 0 && send(fd, request, (size_t)length, MSG_NOSIGNAL) > 0)
		text = read_answer(fd, timeout_ms);
	if (!text)
		snprintf(message, size, "%s: %s%s", path, strerror(errno),
			 errno == EACCES ? "; only the user and the group of the server may use it"
					 : "");
	if (fd >= 0)
		close(fd);
	if (!text)
		return NULL;
	body = strstr(text, "\r\n\r\n");
	if (strncmp(text, "HTTP/1.", 7) != 0 || !strstr(text, " 200 ") || !body) {
		snprintf(message, size, "%s: not a metrics socket of rxwire", path);
		free(text);
		return NULL;
	}
	memmove(text, body + 4, strlen(body + 4) + 1);
	return text;
}

/* NAME{LABELS} VALUE, in place. */
static bool parse_sample(char *line, struct stat_sample *s)
{
	char *name_end = line + strcspn(line, "{ "), *value, *end;

	s->name = line;
	s->labels = name_end; /* the NUL there, if there are no labels */
	value = name_end;
	if (*name_end == '{') {
		char *close = strchr(name_end, '}');

		if (!close || close[1] != ' ')
			return false;
		*close = 0;
		s->labels = name_end + 1;
		value = close + 1;
	}
	if (name_end == line || (*name_end != '{' && *name_end != ' '))
		return false;
	s->value = strtod(value + 1, &end);
	if (*name_end == ' ')
		s->labels = end;
	*name_end = 0;
	return end != value + 1 && *end == 0;
}

bool stat_parse(char *text, struct stat_samples *samples)
{
	char *line, *save = NULL;
	size_t room = 0;

	memset(samples, 0, sizeof(*samples));
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (*line == '#')
			continue;
		if (samples->count == room) {
			struct stat_sample *more;

			room = room ? 2 * room : 256;
			more = realloc(samples->at, room * sizeof(*more));
			if (!more)
				break;
			samples->at = more;
		}
		if (!parse_sample(line, &samples->at[samples->count]))
			break;
		samples->count++;
	}
	if (!line)
		return true;
	free(samples->at);
	memset(samples, 0, sizeof(*samples));
	return false;
}

bool stat_label(const char *labels, const char *name, char *value, size_t size)
{
	size_t n = strlen(name);

	for (const char *at = labels; (at = strstr(at, name)); at += n)
		if ((at == labels || at[-1] == ',') && at[n] == '=' && at[n + 1] == '"') {
			snprintf(value, size, "%.*s", (int)strcspn(at + n + 2, "\""), at + n + 2);
			return true;
		}
	return false;
}

double stat_sum(const struct stat_samples *samples, const char *name, const char *labels)
{
	double sum = 0;

	for (size_t i = 0; i < samples->count; i++)
		if (!strcmp(samples->at[i].name, name) &&
		    (!*labels || strstr(samples->at[i].labels, labels)))
			sum += samples->at[i].value;
	return sum;
}

/* ---- calls in progress ---- */

static const char *text_of_call(const json_t *call, const char *member)
{
	const char *text = json_string_value(json_object_get(call, member));

	return text ? text : "?";
}

/* A number of a call; 0 if it lacks it. */
static double stat_call_number(const json_t *call, const char *member)
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
