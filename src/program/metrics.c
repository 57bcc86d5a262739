/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics of a running program for Prometheus. One thread serves all connections, and its sockets
 * never block. The size and duration of a request, the connections of one process, and all
 * connections are limited. Beyond a limit the oldest connection is closed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/observe.h>

#include "common/clock.h"
#include "common/failure.h"
#include "common/sigmask.h"
#include "program/message.h"
#include "program/metrics.h"

#define CLIENTS	    16		/* connections at a time */
#define OF_PROCESS  4		/* connections of one process */
#define BACKLOG	    128		/* connections not yet accepted */
#define REQUEST_MAX 4096	/* bytes of a request */
#define TIME_LIMIT  5000000000u /* ns for a request and its answer */
#define FRESH	    200000000u /* ns for which a text is reused for further requests */
#define CALLS	    1000       /* of GET /calls */
#define INTERVAL    15000      /* ms */
#define PAUSE	    1000000000u /* ns without accepting after accept() has failed */

struct client {
	int fd; /* -1 = free */
	uint64_t accepted_ns;
	struct ucred peer;
	size_t got; /* bytes of the request */
	char request[REQUEST_MAX];
	char *answer; /* NULL: the request is not complete */
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
	uint64_t pause;	 /* no connection is accepted before this time */
	bool complained; /* an error of the file has been reported */
	struct client client[CLIENTS];
	double started; /* start of the program, seconds since 1970 */
	char *text;	/* the latest text */
	size_t text_length;
	uint64_t text_at; /* when it was made, 0 = never */
	char *calls;	  /* the same for the list of calls */
	size_t calls_length;
	uint64_t calls_at;
};

/* Resident memory in bytes; 0: not known. */
static unsigned long long read_resident(void)
{
	unsigned long long pages = 0, ignored;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &ignored, &pages) != 2)
		pages = 0;
	fclose(f);
	return pages * (unsigned long long)sysconf(_SC_PAGESIZE);
}

static unsigned open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *d;
	unsigned n = 0;

	if (!dir)
		return 0;
	while ((d = readdir(dir)))
		n += d->d_name[0] != '.';
	closedir(dir);
	return n ? n - 1 : 0; /* without that of the directory */
}

/* When the program was started, in seconds since 1970; 0: not known. */
static double start_time(void)
{
	unsigned long long ticks = 0;
	char text[1024], *name_end;
	FILE *f = fopen("/proc/self/stat", "re");
	size_t n;

	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	/*
	 * The name may contain any character. The 20th field after it is the start time, counted
	 * from the boot of the machine.
	 */
	name_end = strrchr(text, ')');
	if (!name_end ||
	    sscanf(name_end + 1,
		   " %*c %*d %*d %*d %*d %*d "
		   "%*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   &ticks) != 1)
		return 0;
	return (double)(wall_ns() - read_clock_ns(CLOCK_BOOTTIME)) / NS_PER_S +
	       (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static char *process_text(double started)
{
	struct rlimit files = {0};
	struct rusage ru;
	char *text = NULL;

	getrusage(RUSAGE_SELF, &ru);
	getrlimit(RLIMIT_NOFILE, &files);
	if (asprintf(
		    &text,
		    "# HELP process_cpu_seconds_total User and system time of the program.\n"
		    "# TYPE process_cpu_seconds_total counter\n"
		    "process_cpu_seconds_total %.6f\n"
		    "# HELP process_start_time_seconds "
		    "When the program was started, in seconds since 1970.\n"
		    "# TYPE process_start_time_seconds gauge\n"
		    "process_start_time_seconds %.2f\n"
		    "# HELP process_open_fds Open file descriptors.\n"
		    "# TYPE process_open_fds gauge\n"
		    "process_open_fds %u\n"
		    "# HELP process_max_fds Most file descriptors that may be open.\n"
		    "# TYPE process_max_fds gauge\n"
		    "process_max_fds %llu\n"
		    "# HELP process_resident_memory_bytes Memory of the program that is resident.\n"
		    "# TYPE process_resident_memory_bytes gauge\n"
		    "process_resident_memory_bytes %llu\n",
		    (double)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) +
			    (double)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6,
		    started, open_files(), (unsigned long long)files.rlim_cur, read_resident()) < 0)
		return NULL;
	return text;
}

/* Concatenate the texts and free them. NULL: no memory, or one of them is NULL. */
static char *join_parts(char *parts[], size_t count, size_t *length)
{
	char *all = NULL;
	bool whole = true;

	*length = 0;
	for (size_t i = 0; i < count; i++) {
		whole = whole && parts[i];
		*length += parts[i] ? strlen(parts[i]) : 0;
	}
	if (whole)
		all = malloc(*length + 1);
	for (size_t i = 0, at = 0; i < count; i++) {
		if (all) {
			strcpy(all + at, parts[i]);
			at += strlen(parts[i]);
		}
		free(parts[i]);
	}
	return all;
}

/* Make a new text, unless the latest one is recent enough. False: no memory. */
static bool refresh_metrics(struct tools_metrics *m, uint64_t now)
{
	char *parts[3] = {NULL, NULL, NULL}, *all;
	size_t length;

	if (m->text && now - m->text_at < FRESH)
		return true;
	if (rxw_metrics_text(m->endpoints, m->count, &parts[0]) < 0)
		parts[0] = NULL;
	parts[1] = m->options.more ? m->options.more(m->options.arg) : strdup("");
	parts[2] = process_text(m->started);
	all = join_parts(parts, 3, &length);
	if (!all)
		return false;
	free(m->text);
	m->text = all;
	m->text_length = length;
	m->text_at = now;
	return true;
}

/* The same for the calls in progress. */
static bool refresh_calls(struct tools_metrics *m, uint64_t now)
{
	char *text;
	int length;

	if (m->calls && now - m->calls_at < FRESH)
		return true;
	length = rxw_metrics_calls(m->endpoints, m->count, CALLS, &text);
	if (length < 0)
		return false;
	free(m->calls);
	m->calls = text;
	m->calls_length = (size_t)length;
	m->calls_at = now;
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

/* Readers of the file see the old text or the new one, never a part of it. */
static int replace_file(struct tools_metrics *m)
{
	int fd = open(m->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	bool good;

	if (fd < 0)
		return -1;
	/*
	 * The file is read by a program of another user, so the umask is ignored; metrics are not
	 * secret.
	 */
	good = write_all(fd, m->text, m->text_length) && fchmod(fd, 0644) == 0;
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
	bool bad = !refresh_metrics(m, now) || replace_file(m) < 0;

	if (bad && !m->complained)
		tools_error("cannot write --metrics-file %s: %s; will retry", m->file,
			    strerror(errno));
	m->complained = bad;
}

/* ---- the socket ---- */

static void close_client(struct client *c)
{
	close(c->fd);
	free(c->answer);
	c->fd = -1;
	c->answer = NULL;
}

/* Connections of the same process, or of the same user. */
static unsigned count_like(const struct tools_metrics *m, const struct ucred *peer, bool process)
{
	unsigned n = 0;

	for (size_t i = 0; i < CLIENTS; i++)
		n += m->client[i].fd >= 0 && (process ? m->client[i].peer.pid == peer->pid
						      : m->client[i].peer.uid == peer->uid);
	return n;
}

/*
 * The slot for a new connection. If the process has its maximum, that of its oldest connection;
 * else a free slot, or that of the oldest connection of the user with the most connections.
 */
static struct client *find_slot(struct tools_metrics *m, const struct ucred *peer)
{
	bool full = count_like(m, peer, true) >= OF_PROCESS;
	struct client *slot = NULL;
	unsigned most = 0;

	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &m->client[i];
		unsigned share;

		if (!full && c->fd < 0)
			return c;
		if (c->fd < 0 || (full && c->peer.pid != peer->pid))
			continue;
		share = full ? 0 : count_like(m, &c->peer, false);
		if (!slot || share > most ||
		    (share == most && c->accepted_ns < slot->accepted_ns)) {
			slot = c;
			most = share;
		}
	}
	return slot;
}

/* Accept a connection. NULL: none is waiting, or accept() failed. */
static struct client *accept_client(struct tools_metrics *m, uint64_t now)
{
	int fd = accept4(m->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct ucred peer = {0};
	socklen_t length = sizeof(peer);
	struct client *c;

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			m->pause = now + PAUSE; /* poll() would report the socket again at once */
		return NULL;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
	c = find_slot(m, &peer);
	if (c->fd >= 0)
		close_client(c);
	c->fd = fd;
	c->accepted_ns = now;
	c->peer = peer;
	c->got = c->sent = c->length = 0;
	return c;
}

#define TEXT "text/plain; version=0.0.4; charset=utf-8"

/* Store the answer, to be sent in parts. */
static bool answer_client(struct client *c, const char *status, const char *type, const char *body,
			  size_t length)
{
	char head[256];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %s\r\nContent-Type: %s\r\n"
			 "Content-Length: %zu\r\nConnection: close\r\n\r\n",
			 status, type, length);

	c->answer = malloc((size_t)n + length);
	if (!c->answer)
		return false;
	memcpy(c->answer, head, (size_t)n);
	memcpy(c->answer + n, body, length);
	c->length = (size_t)n + length;
	return true;
}

static bool answer_plainly(struct client *c, const char *status)
{
	char body[64];
	int n = snprintf(body, sizeof(body), "%s\n", status);

	return answer_client(c, status, TEXT, body, (size_t)n);
}

/* Whether the request is complete: it ends with an empty line. */
static bool complete(const struct client *c)
{
	return memmem(c->request, c->got, "\r\n\r\n", 4) || memmem(c->request, c->got, "\n\n", 2);
}

static bool asks_for(const struct client *c, const char *path)
{
	size_t n = strlen(path);

	return c->got > n + 4 && memcmp(c->request + 4, path, n) == 0 &&
	       strchr(" ?\r\n", c->request[4 + n]);
}

/* Answer the request; false: no memory. */
static bool answer_request(struct tools_metrics *m, struct client *c, uint64_t now)
{
	if (c->got < 4 || memcmp(c->request, "GET ", 4) != 0)
		return answer_plainly(c, "405 Method Not Allowed");
	if (asks_for(c, "/calls"))
		return refresh_calls(m, now) &&
		       answer_client(c, "200 OK", "application/json", m->calls, m->calls_length);
	if (!asks_for(c, "/metrics"))
		return answer_plainly(c, "404 Not Found");
	return refresh_metrics(m, now) && answer_client(c, "200 OK", TEXT, m->text, m->text_length);
}

/* Read the available bytes of the request. False: close the connection. */
static bool read_request(struct tools_metrics *m, struct client *c, uint64_t now)
{
	ssize_t n = recv(c->fd, c->request + c->got, sizeof(c->request) - c->got, 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (n == 0)
		return false;
	c->got += (size_t)n;
	if (complete(c))
		return answer_request(m, c, now);
	return c->got < sizeof(c->request) ||
	       answer_plainly(c, "431 Request Header Fields Too Large");
}

/* Send as much of the answer as possible. False: all of it is sent, or the peer is gone. */
static bool write_answer(struct client *c)
{
	ssize_t n = send(c->fd, c->answer + c->sent, c->length - c->sent, MSG_NOSIGNAL);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	c->sent += (size_t)n;
	if (c->sent < c->length)
		return true;
	shutdown(c->fd, SHUT_WR);
	return false;
}

static void serve_client(struct tools_metrics *m, struct client *c, short events, uint64_t now)
{
	bool stay = true;

	if (!c->answer && (events & (POLLIN | POLLHUP | POLLERR)))
		stay = read_request(m, c, now);
	if (stay && c->answer)
		stay = write_answer(c);
	if (!stay || now - c->accepted_ns > TIME_LIMIT)
		close_client(c);
}

/* Serve each connection as it is accepted, so that a later one does not take its slot first. */
static void accept_clients(struct tools_metrics *m, uint64_t now)
{
	struct client *c;

	for (unsigned i = 0; i < BACKLOG && (c = accept_client(m, now)); i++)
		serve_client(m, c, POLLIN, now);
}

/* ---- the thread ---- */

/* Time until the file is due or a connection expires, in ms; -1 = never. */
static int wait_time(const struct tools_metrics *m, uint64_t now, uint64_t due)
{
	uint64_t until = m->file ? due : UINT64_MAX;

	if (m->pause && m->pause < until)
		until = m->pause;

	for (size_t i = 0; i < CLIENTS; i++)
		if (m->client[i].fd >= 0 && m->client[i].accepted_ns + TIME_LIMIT < until)
			until = m->client[i].accepted_ns + TIME_LIMIT;
	if (until == UINT64_MAX)
		return -1;
	return until <= now ? 0 : (int)((until - now) / NS_PER_MS) + 1;
}

static void *run_metrics(void *arg)
{
	struct tools_metrics *m = arg;
	uint64_t interval = m->options.interval_ms * NS_PER_MS, due = monotonic_ns();

	for (;;) {
		struct pollfd p[CLIENTS + 2];
		uint64_t now = monotonic_ns();
		int n;

		if (m->file && now >= due) {
			write_file(m, now);
			due = now + interval;
		}
		p[0] = (struct pollfd){.fd = m->stop, .events = POLLIN};
		if (now >= m->pause)
			m->pause = 0;
		p[1] = (struct pollfd){.fd = m->pause ? -1 : m->listener, .events = POLLIN};
		for (size_t i = 0; i < CLIENTS; i++)
			p[i + 2] =
				(struct pollfd){.fd = m->client[i].fd,
						.events = m->client[i].answer ? POLLOUT : POLLIN};
		n = poll(p, CLIENTS + 2, wait_time(m, now, due));
		if (n < 0 && errno != EINTR)
			break;
		if (n > 0 && p[0].revents)
			break;
		now = monotonic_ns();
		for (size_t i = 0; i < CLIENTS; i++)
			if (m->client[i].fd >= 0)
				serve_client(m, &m->client[i], n > 0 ? p[i + 2].revents : 0, now);
		if (n > 0 && p[1].revents)
			accept_clients(m, now);
	}
	return NULL;
}

/* ---- start and stop ---- */

/* Remove a stale socket, which a killed program has left; fail if a program answers on it. */
static int remove_stale(const struct sockaddr_un *name)
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
	if (remove_stale(&name) < 0)
		return -1;
	m->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->listener < 0 || bind(m->listener, (struct sockaddr *)&name, sizeof(name)) < 0)
		return -1;
	m->path = strdup(m->options.socket);
	/* For owner and group. The permissions of the directory may restrict this. */
	if (!m->path || chmod(name.sun_path, 0660) < 0)
		return -1;
	return listen(m->listener, BACKLOG);
}

static void free_metrics(struct tools_metrics *m)
{
	for (size_t i = 0; i < CLIENTS; i++)
		if (m->client[i].fd >= 0)
			close_client(&m->client[i]);
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
	free(m->calls);
	free(m->endpoints);
	free(m);
}

/* The first file is written here, so that a wrong name is reported at once. */
static int begin_serving(struct tools_metrics *m, rxw_endpoint *const *endpoints, size_t count,
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
		    !refresh_metrics(m, monotonic_ns()) || replace_file(m) < 0)
			return -1;
	}
	*what = "threads";
	m->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (m->stop >= 0)
		errno = create_thread_without_signals(&m->thread, run_metrics, m);
	return m->stop < 0 || errno ? -1 : 0;
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
	if (!m)
		return fail_with(-1, message, size, "no memory");
	m->options = *options;
	if (!m->options.interval_ms)
		m->options.interval_ms = INTERVAL;
	m->listener = m->stop = -1;
	m->started = start_time();
	for (size_t i = 0; i < CLIENTS; i++)
		m->client[i].fd = -1;
	if (begin_serving(m, endpoints, count, &what) < 0) {
		snprintf(message, size, "%s%s%s: %s", what, *what == '-' ? " " : "",
			 strcmp(what, "--metrics-file") == 0	 ? options->file
			 : strcmp(what, "--metrics-socket") == 0 ? options->socket
								 : "",
			 strerror(errno));
		free_metrics(m);
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
		write_file(m, monotonic_ns());
	}
	free_metrics(m);
}
