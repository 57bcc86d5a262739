/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics socket of a program on this host: fetching its text and cutting it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "program/report.h"
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
		snprintf(message, size, "%s: %s", path, strerror(errno));
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
