/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Figures of a running program for Prometheus. One thread serves all: sockets never block, requests
 * and the time for them are bounded, and whoever comes takes the place of the oldest if all are taken.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <rxwire/error.h>
#include <rxwire/metrics.h>

#include "tools/common/message.h"
#include "tools/common/metrics.h"
#include "tools/common/report.h"

#define GUESTS	      16	  /* connections at a time */
#define REQUEST_MAX   4096	  /* bytes of a request */
#define PATIENCE      5000000000u /* ns for a request and its answer */
#define FRESH	      200000000u  /* ns that a text is good for: asking often costs no more */
#define INTERVAL      15000	  /* ms */
#define NS_PER_MS     1000000u

/* One who asks. */
struct guest {
	int fd; /* -1 = free */
	uint64_t came;
	size_t got; /* of the request */
	char request[REQUEST_MAX];
	char *answer; /* NULL: not asked yet */
	size_t length, sent;
};

struct tools_metrics {
	struct tools_metrics_options options;
	char *file, *temporary, *path;
	rxw_endpoint **endpoints;
	size_t count;
	pthread_t thread;
	int stop; /* eventfd */
	int listener;
	bool complained; /* about the file */
	struct guest guest[GUESTS];
	char *text; /* the latest */
	size_t text_length;
	uint64_t text_at; /* when it was made, 0 = never */
};

static char *process_text(void)
{
	unsigned long long pages = 0, ignored;
	struct rusage ru;
	char *text = NULL;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f) {
		if (fscanf(f, "%llu %llu", &ignored, &pages) != 2)
			pages = 0;
		fclose(f);
	}
	getrusage(RUSAGE_SELF, &ru);
	if (asprintf(&text,
		     "# HELP process_cpu_seconds_total User and system time of the program.\n"
		     "# TYPE process_cpu_seconds_total counter\n"
		     "process_cpu_seconds_total %.6f\n"
		     "# HELP process_resident_memory_bytes Memory of the program that is resident.\n"
		     "# TYPE process_resident_memory_bytes gauge\n"
		     "process_resident_memory_bytes %llu\n",
		     (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
			     (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6,
		     pages * (unsigned long long)sysconf(_SC_PAGESIZE)) < 0)
		return NULL;
	return text;
}

/* The text of now, or of a moment ago. False: no memory. */
static bool refresh(struct tools_metrics *m, uint64_t now)
{
	char *text = NULL, *process, *all;
	int n;

	if (m->text && now - m->text_at < FRESH)
		return true;
	n = rxw_metrics_text(m->endpoints, m->count, &text);
	process = process_text();
	all = n >= 0 && process ? realloc(text, (size_t)n + strlen(process) + 1) : NULL;
	if (!all) {
		free(text);
		free(process);
		return false;
	}
	strcpy(all + n, process);
	free(m->text);
	m->text = all;
	m->text_length = (size_t)n + strlen(process);
	m->text_at = now;
	free(process);
	return true;
}

/* ---- the file ---- */

static bool write_all(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t n = write(fd, text, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text += n;
		length -= (size_t)n;
	}
	return true;
}

/* Whoever reads the file finds the old text or the new one, never a part. */
static int replace_file(struct tools_metrics *m)
{
	int fd = open(m->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	bool good;

	if (fd < 0)
		return -1;
	good = write_all(fd, m->text, m->text_length);
	if (close(fd) < 0 || !good || rename(m->temporary, m->file) < 0) {
		int why = errno;

		unlink(m->temporary);
		errno = why;
		return -1;
	}
	return 0;
}

static void write_file(struct tools_metrics *m, uint64_t now)
{
	bool bad = !refresh(m, now) || replace_file(m) < 0;

	if (bad && !m->complained)
		tools_error("--metrics-file %s: %s; it will be tried again", m->file,
			    strerror(errno));
	m->complained = bad;
}

/* ---- the socket ---- */

static void leave(struct guest *g)
{
	close(g->fd);
	free(g->answer);
	g->fd = -1;
	g->answer = NULL;
}

static void welcome(struct tools_metrics *m, uint64_t now)
{
	int fd = accept4(m->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct guest *place = &m->guest[0];

	if (fd < 0)
		return;
	for (size_t i = 0; i < GUESTS && place->fd >= 0; i++)
		if (m->guest[i].fd < 0 || m->guest[i].came < place->came)
			place = &m->guest[i];
	if (place->fd >= 0)
		leave(place);
	place->fd = fd;
	place->came = now;
	place->got = place->sent = place->length = 0;
}

/* The whole answer, to be sent piece by piece. */
static bool answer(struct guest *g, const char *status, const char *body, size_t length)
{
	char head[256];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
			 "Content-Length: %zu\r\nConnection: close\r\n\r\n",
			 status, length);

	g->answer = malloc((size_t)n + length);
	if (!g->answer)
		return false;
	memcpy(g->answer, head, (size_t)n);
	memcpy(g->answer + n, body, length);
	g->length = (size_t)n + length;
	return true;
}

static bool plain(struct guest *g, const char *status)
{
	char body[64];
	int n = snprintf(body, sizeof(body), "%s\n", status);

	return answer(g, status, body, (size_t)n);
}

/* Is the request complete? Its end is an empty line. */
static bool complete(const struct guest *g)
{
	return memmem(g->request, g->got, "\r\n\r\n", 4) || memmem(g->request, g->got, "\n\n", 2);
}

static bool asks_for(const struct guest *g, const char *path)
{
	size_t n = strlen(path);

	return g->got > n + 4 && memcmp(g->request + 4, path, n) == 0 &&
	       strchr(" ?\r\n", g->request[4 + n]);
}

/* What the request is answered with; false: no memory. */
static bool decide(struct tools_metrics *m, struct guest *g, uint64_t now)
{
	if (g->got < 4 || memcmp(g->request, "GET ", 4) != 0)
		return plain(g, "405 Method Not Allowed");
	if (!asks_for(g, "/metrics"))
		return plain(g, "404 Not Found");
	if (!refresh(m, now))
		return false;
	return answer(g, "200 OK", m->text, m->text_length);
}

/* Read what came. False: the guest is to go. */
static bool hear(struct tools_metrics *m, struct guest *g, uint64_t now)
{
	ssize_t n = recv(g->fd, g->request + g->got, sizeof(g->request) - g->got, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	g->got += (size_t)n;
	if (complete(g))
		return decide(m, g, now);
	return g->got < sizeof(g->request) || plain(g, "431 Request Header Fields Too Large");
}

/* Send what fits. False: all of it is sent, or the guest is gone. */
static bool tell(struct guest *g)
{
	ssize_t n = send(g->fd, g->answer + g->sent, g->length - g->sent, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	g->sent += (size_t)n;
	if (g->sent < g->length)
		return true;
	shutdown(g->fd, SHUT_WR);
	return false;
}

static void attend(struct tools_metrics *m, struct guest *g, short events, uint64_t now)
{
	bool stay = true;

	if (!g->answer && (events & (POLLIN | POLLHUP | POLLERR)))
		stay = hear(m, g, now);
	if (stay && g->answer)
		stay = tell(g);
	if (!stay || now - g->came > PATIENCE)
		leave(g);
}

/* ---- the thread ---- */

/* When to look again: the file is due, or a guest's time is up; -1 = never. In ms. */
static int wait_time(const struct tools_metrics *m, uint64_t now, uint64_t due)
{
	uint64_t until = m->file ? due : UINT64_MAX;

	for (size_t i = 0; i < GUESTS; i++)
		if (m->guest[i].fd >= 0 && m->guest[i].came + PATIENCE < until)
			until = m->guest[i].came + PATIENCE;
	if (until == UINT64_MAX)
		return -1;
	return until <= now ? 0 : (int)((until - now) / NS_PER_MS) + 1;
}

static void *run(void *arg)
{
	struct tools_metrics *m = arg;
	uint64_t interval = m->options.interval_ms * NS_PER_MS, due = tools_now();

	for (;;) {
		struct pollfd p[GUESTS + 2];
		uint64_t now = tools_now();
		int n;

		if (m->file && now >= due) {
			write_file(m, now);
			due = now + interval;
		}
		p[0] = (struct pollfd){.fd = m->stop, .events = POLLIN};
		p[1] = (struct pollfd){.fd = m->listener, .events = POLLIN};
		for (size_t i = 0; i < GUESTS; i++)
			p[i + 2] = (struct pollfd){
				.fd = m->guest[i].fd,
				.events = m->guest[i].answer ? POLLOUT : POLLIN};
		n = poll(p, GUESTS + 2, wait_time(m, now, due));
		if (n < 0 && errno != EINTR)
			break;
		if (n > 0 && p[0].revents)
			break;
		now = tools_now();
		for (size_t i = 0; i < GUESTS; i++)
			if (m->guest[i].fd >= 0)
				attend(m, &m->guest[i], n > 0 ? p[i + 2].revents : 0, now);
		if (n > 0 && p[1].revents)
			welcome(m, now);
	}
	return NULL;
}

/* ---- beginning and end ---- */

/* A socket that a program left behind when it was killed may go; one that answers may not. */
static int clear_way(const struct sockaddr_un *name)
{
	struct stat st;
	int fd, rc;

	if (lstat(name->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	rc = connect(fd, (const struct sockaddr *)name, sizeof(*name));
	if (rc == 0 || errno != ECONNREFUSED) {
		close(fd);
		errno = EADDRINUSE;
		return -1;
	}
	close(fd);
	return unlink(name->sun_path);
}

static int open_socket(struct tools_metrics *m)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	if (strlen(m->options.socket) >= sizeof(name.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(name.sun_path, m->options.socket);
	if (clear_way(&name) < 0)
		return -1;
	m->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->listener < 0 || bind(m->listener, (struct sockaddr *)&name, sizeof(name)) < 0)
		return -1;
	m->path = strdup(m->options.socket);
	/* The owner and the group: who else may read is for the folder to say. */
	if (!m->path || chmod(name.sun_path, 0660) < 0)
		return -1;
	return listen(m->listener, GUESTS);
}

static void release(struct tools_metrics *m)
{
	for (size_t i = 0; i < GUESTS; i++)
		if (m->guest[i].fd >= 0)
			leave(&m->guest[i]);
	if (m->listener >= 0)
		close(m->listener);
	if (m->path)
		unlink(m->path);
	if (m->stop >= 0)
		close(m->stop);
	free(m->path);
	free(m->file);
	free(m->temporary);
	free(m->text);
	free(m->endpoints);
	free(m);
}

/* A thread that no signal of the program goes to. */
static int start_thread(struct tools_metrics *m)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&m->thread, NULL, run, m);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = rc;
	return rc ? -1 : 0;
}

/* The first file is written here, so that a wrong name is told at once. */
static int begin(struct tools_metrics *m, rxw_endpoint *const *endpoints, size_t count,
		 const char **what)
{
	*what = "--metrics-socket";
	if (m->options.socket && open_socket(m) < 0)
		return -1;
	*what = "--metrics-file";
	m->endpoints = calloc(count ? count : 1, sizeof(*m->endpoints));
	if (m->endpoints && count)
		memcpy(m->endpoints, endpoints, count * sizeof(*m->endpoints));
	m->count = count;
	if (!m->endpoints)
		return -1;
	if (m->options.file) {
		m->file = strdup(m->options.file);
		if (!m->file || asprintf(&m->temporary, "%s.tmp", m->file) < 0 ||
		    !refresh(m, tools_now()) || replace_file(m) < 0)
			return -1;
	}
	*what = "threads";
	m->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return m->stop < 0 ? -1 : start_thread(m);
}

int tools_metrics_start(const struct tools_metrics_options *options, rxw_endpoint *const *endpoints,
			size_t count, struct tools_metrics **metrics, char *message, size_t size)
{
	struct tools_metrics *m;
	const char *what = "";

	*metrics = NULL;
	if (!options->file && !options->socket)
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m) {
		snprintf(message, size, "no memory");
		return -1;
	}
	m->options = *options;
	if (!m->options.interval_ms)
		m->options.interval_ms = INTERVAL;
	m->listener = m->stop = -1;
	for (size_t i = 0; i < GUESTS; i++)
		m->guest[i].fd = -1;
	if (begin(m, endpoints, count, &what) < 0) {
		snprintf(message, size, "%s%s%s: %s", what, *what == '-' ? " " : "",
			 strcmp(what, "--metrics-file") == 0	 ? options->file :
			 strcmp(what, "--metrics-socket") == 0 ? options->socket :
								   "",
			 strerror(errno));
		release(m);
		return -1;
	}
	*metrics = m;
	return 0;
}

void tools_metrics_stop(struct tools_metrics *m)
{
	if (!m)
		return;
	eventfd_write(m->stop, 1);
	pthread_join(m->thread, NULL);
	if (m->file) {
		m->text_at = 0;
		free(m->text);
		m->text = NULL;
		write_file(m, tools_now());
	}
	release(m);
}
