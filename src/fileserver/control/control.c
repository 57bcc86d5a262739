/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket: one thread accepts connections and reads requests. Each request is executed on a thread of its own.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "admin/admin.h"
#include "common/failure.h"
#include "fileserver/base/base.h"
#include "fileserver/control/control.h"

#define BACKLOG	  16
#define READ_NS	  (10 * (uint64_t)NS_PER_S) /* until a request must be complete */
#define REST_NS	  ((uint64_t)NS_PER_S)	    /* after a connection could not be accepted */
#define SEND_S	  10			    /* how long a client may leave answers unread */
#define FDS_EXTRA 2			    /* listener and wake */

#define CONTROL_CONNECTIONS 16

enum control_state {
	CONTROL_FREE,
	CONTROL_READING, /* the request is not complete */
	CONTROL_RUNNING	 /* its own thread executes it */
};

/* The polling thread has all members, but for those that say otherwise. */
struct control_connection {
	struct fsd_control *control;
	enum control_state state;
	int fd;
	int directory; /* descriptor that came with the request; -1 */
	uid_t uid;
	pid_t pid;
	uint64_t deadline; /* monotonic time in ns until the request must be complete */
	pthread_t thread;
	_Atomic bool gone; /* the client: by both threads */
	_Atomic bool done; /* set by the request's thread at its end */
	size_t length;
	char line[ADMIN_LINE_MAX]; /* constant while the request runs */
};

struct fsd_control {
	struct admin_options admin;
	char *directory;
	int listener;
	int wake; /* eventfd: a request is done, or the server stops */
	pthread_t thread;
	_Atomic bool stopping;
	uint64_t rest; /* no connections are accepted before this time */
	struct control_connection connection[CONTROL_CONNECTIONS];
};

/* -- a request, on its own thread -- */

/* An object as a line; -1: the client is gone, or does not read. */
static int send_object(struct control_connection *connection, const json_t *object, int flags)
{
	char *line = json_dumps(object, JSON_COMPACT);
	size_t length = line ? strlen(line) : 0, done = 0;

	if (line)
		line[length++] = '\n'; /* in place of the NUL */
	while (done < length) {
		ssize_t n = send(connection->fd, line + done, length - done, MSG_NOSIGNAL | flags);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	free(line);
	return line && done == length ? 0 : -1;
}

static void send_answer(void *arg, json_t *object)
{
	struct control_connection *connection = arg;

	if (!atomic_load(&connection->gone) && send_object(connection, object, 0))
		atomic_store(&connection->gone, true);
}

static bool is_request_stopped(void *arg)
{
	struct control_connection *connection = arg;

	return atomic_load(&connection->gone) || atomic_load(&connection->control->stopping);
}

/* An answer to a connection: an error. Does not wait for the client. */
static void refuse_request(struct control_connection *connection, const char *text)
{
	json_t *object = json_pack("{s:s, s:i}", "error", text, "status", 1);

	if (object)
		send_object(connection, object, MSG_DONTWAIT);
	json_decref(object);
}

/* The line of the log: the requester and the change. */
static void log_request(const struct control_connection *connection, const json_t *request)
{
	const char *command = json_string_value(json_object_get(request, "command"));
	char *text;

	if (!command || !admin_changes(command))
		return;
	text = json_dumps(request, JSON_COMPACT | JSON_ENSURE_ASCII);
	fsd_log(RXW_LOG_INFO, "control: user %u, process %d: %.400s", (unsigned)connection->uid,
		(int)connection->pid, text ? text : command);
	free(text);
}

static void execute_request(struct control_connection *connection, const json_t *request)
{
	struct admin_output output = {
		.answer = send_answer,
		.stopped = is_request_stopped,
		.arg = connection,
		.directory = connection->directory,
	};

	log_request(connection, request);
	admin_execute(&connection->control->admin, request, &output);
}

/* Executes the line of a connection, on its own thread. */
static void *run_request(void *arg)
{
	struct control_connection *connection = arg;
	uint64_t one = 1;
	json_error_t error;
	json_t *request =
		json_loadb(connection->line, connection->length, JSON_REJECT_DUPLICATES, &error);

	assert(!connection->done);
	if (request)
		execute_request(connection, request);
	else
		refuse_request(connection, "request: not one object of JSON in UTF-8 on one line");
	json_decref(request);
	atomic_store(&connection->done, true);
	if (write(connection->control->wake, &one, sizeof(one)) < 0)
		fsd_log(RXW_LOG_WARNING, "control: the end of a request was not noticed");
	return NULL;
}

/* -- connections -- */

static void end_connection(struct control_connection *connection)
{
	assert(connection->state != CONTROL_FREE);
	close(connection->fd);
	if (connection->directory >= 0)
		close(connection->directory);
	connection->state = CONTROL_FREE;
}

/* Only the user of this process and root: whoever could stop the server and use the store. */
static bool may_use(int fd, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &length) < 0)
		return false;
	if (peer->uid == geteuid() || peer->uid == 0)
		return true;
	fsd_log(RXW_LOG_WARNING, "control: refused user %u, process %d", (unsigned)peer->uid,
		(int)peer->pid);
	return false;
}

static struct control_connection *free_connection(struct fsd_control *control)
{
	for (int i = 0; i < CONTROL_CONNECTIONS; i++)
		if (control->connection[i].state == CONTROL_FREE)
			return &control->connection[i];
	return NULL;
}

static void accept_connection(struct fsd_control *control, uint64_t now)
{
	struct control_connection *connection = free_connection(control);
	int fd = accept4(control->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct ucred peer;

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			fsd_log(RXW_LOG_WARNING, "control: no connection can be accepted: %s",
				strerror(errno));
			control->rest = now + REST_NS;
		}
		return;
	}
	if (!may_use(fd, &peer)) {
		close(fd);
		return;
	}
	assert(connection); /* the listener is polled only while one is free */
	connection->control = control;
	connection->state = CONTROL_READING;
	connection->fd = fd;
	connection->directory = -1;
	connection->uid = peer.uid;
	connection->pid = peer.pid;
	connection->deadline = now + READ_NS;
	connection->length = 0;
	atomic_store(&connection->gone, false);
	atomic_store(&connection->done, false);
}

/* Keep the first descriptor that came. */
static void take_descriptors(struct control_connection *connection, struct msghdr *message)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		size_t count;

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
			if (connection->directory < 0)
				connection->directory = fd;
			else
				close(fd);
		}
	}
}

/* Start the thread of a complete request. */
static void begin_request(struct control_connection *connection)
{
	const struct timeval limit = {.tv_sec = SEND_S};
	int rc, flags;

	assert(connection->state == CONTROL_READING);
	if (setsockopt(connection->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0)
		fsd_log(RXW_LOG_WARNING, "control: a socket takes no limit of time: %s",
			strerror(errno));
	/* The requests' thread may wait: its descriptor is blocking from now on. */
	flags = fcntl(connection->fd, F_GETFL);
	rc = flags < 0 || fcntl(connection->fd, F_SETFL, flags & ~O_NONBLOCK) < 0;
	if (!rc)
		rc = pthread_create(&connection->thread, NULL, run_request, connection);
	if (rc) {
		refuse_request(connection, "the server has no thread for this; try again");
		end_connection(connection);
		return;
	}
	connection->state = CONTROL_RUNNING;
}

/* Reads the next bytes of a request. */
static void receive_request_bytes(struct control_connection *connection)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {connection->line + connection->length,
			    sizeof(connection->line) - connection->length};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(connection->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end_connection(connection);
		return;
	}
	take_descriptors(connection, &message);
	end = memchr(iov.iov_base, '\n', (size_t)n);
	connection->length += (size_t)n;
	if (end) {
		connection->length = (size_t)(end - connection->line);
		begin_request(connection);
	} else if (connection->length == sizeof(connection->line)) {
		refuse_request(connection, "request: longer than 16384 bytes");
		end_connection(connection);
	}
}

/* -- the thread -- */

static void advance_connection(struct control_connection *connection, short events, uint64_t now)
{
	if (connection->state == CONTROL_RUNNING) {
		if (events)
			atomic_store(&connection->gone, true);
		if (!atomic_load(&connection->done))
			return;
		pthread_join(connection->thread, NULL);
		end_connection(connection);
	} else if (connection->state == CONTROL_READING) {
		if (events)
			receive_request_bytes(connection);
		else if (now >= connection->deadline)
			end_connection(connection);
	}
}

/* The descriptors to wait for; returns the limit in ms, -1: none. */
static int fill_poll(const struct fsd_control *control, struct pollfd *poll_fds, uint64_t now)
{
	bool room = false;
	uint64_t until = UINT64_MAX;

	for (int i = 0; i < CONTROL_CONNECTIONS; i++) {
		const struct control_connection *connection = &control->connection[i];
		struct pollfd *fd = &poll_fds[i];
		bool reading = connection->state == CONTROL_READING;

		/* While a request runs, POLLHUP tells that its client is gone: once. */
		*fd = (struct pollfd){.fd = connection->fd, .events = reading ? POLLIN : 0};
		if (connection->state == CONTROL_FREE ||
		    (!reading && atomic_load(&connection->gone)))
			fd->fd = -1;
		if (reading && connection->deadline < until)
			until = connection->deadline;
		room = room || connection->state == CONTROL_FREE;
	}
	poll_fds[CONTROL_CONNECTIONS] = (struct pollfd){
		.fd = room && now >= control->rest ? control->listener : -1, .events = POLLIN};
	poll_fds[CONTROL_CONNECTIONS + 1] = (struct pollfd){.fd = control->wake, .events = POLLIN};
	if (now < control->rest && control->rest < until)
		until = control->rest;
	return until == UINT64_MAX ? -1 : until <= now ? 0 : (int)((until - now) / 1000000) + 1;
}

static void *serve_control_socket(void *arg)
{
	struct fsd_control *control = arg;
	struct pollfd poll_fds[CONTROL_CONNECTIONS + FDS_EXTRA];
	uint64_t now = monotonic_ns(), count;

	while (!atomic_load(&control->stopping)) {
		int limit = fill_poll(control, poll_fds, now);

		if (poll(poll_fds, CONTROL_CONNECTIONS + FDS_EXTRA, limit) < 0)
			continue; /* EINTR */
		now = monotonic_ns();
		if (poll_fds[CONTROL_CONNECTIONS + 1].revents &&
		    read(control->wake, &count, sizeof(count)) < 0)
			continue;
		for (int i = 0; i < CONTROL_CONNECTIONS; i++)
			advance_connection(&control->connection[i], poll_fds[i].revents, now);
		if (poll_fds[CONTROL_CONNECTIONS].revents)
			accept_connection(control, now);
	}
	return NULL;
}

/* -- start and stop -- */

/* Unlink a socket that is left; -1 if there is something else, or with errno. */
static int remove_socket(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -1;
	if (!S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		return -1;
	}
	return unlink(path);
}

/* The listening socket: 0, or -1 with errno. */
static int open_listener(struct fsd_control *control)
{
	struct sockaddr_un address = {0};
	int descriptor, rc = -1, saved;

	if (admin_socket_address(control->directory, &address, &descriptor))
		return -1;
	control->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	/* The mode of the descriptor becomes that of the file, whatever the umask. */
	if (control->listener >= 0 && fchmod(control->listener, 0600) == 0 &&
	    remove_socket(address.sun_path) == 0 &&
	    bind(control->listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    listen(control->listener, BACKLOG) == 0)
		rc = 0;
	saved = errno;
	if (descriptor >= 0)
		close(descriptor);
	errno = saved;
	return rc;
}

static void destroy_control(struct fsd_control *control)
{
	if (control->listener >= 0)
		close(control->listener);
	if (control->wake >= 0)
		close(control->wake);
	free(control->directory);
	free(control);
}

static struct fsd_control *create_control(const struct fsd_control_options *options)
{
	struct fsd_control *control = calloc(1, sizeof(*control));

	if (!control)
		return NULL;
	control->listener = -1;
	control->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	control->directory = strdup(options->directory);
	control->admin = (struct admin_options){
		.store = options->store,
		.directory = control->directory,
		.changed = options->changed,
		.forbids = options->forbids,
		.arg = options->arg,
	};
	if (control->wake >= 0 && control->directory)
		return control;
	destroy_control(control);
	return NULL;
}

int fsd_control_start(const struct fsd_control_options *options, struct fsd_control **out,
		      char *message)
{
	struct fsd_control *control = create_control(options);
	int error = ENOMEM;

	if (!control)
		goto fail;
	if (open_listener(control)) {
		error = errno;
		goto fail;
	}
	error = pthread_create(&control->thread, NULL, serve_control_socket, control);
	if (error)
		goto fail;
	*out = control;
	return 0;
fail:
	if (control)
		destroy_control(control);
	return fail_with(-1, message, FSD_MESSAGE_MAX,
			 "%.300s/" ADMIN_SOCKET ", the control socket: %s%s", options->directory,
			 strerror(error),
			 error == EEXIST ? "; it is not a socket: move it away" : "");
}

void fsd_control_stop(struct fsd_control *control)
{
	struct sockaddr_un address = {0};
	uint64_t one = 1;
	int descriptor;

	if (!control)
		return;
	atomic_store(&control->stopping, true);
	if (write(control->wake, &one, sizeof(one)) < 0)
		fsd_log(RXW_LOG_WARNING, "control: cannot wake the thread: %s", strerror(errno));
	pthread_join(control->thread, NULL);
	for (int i = 0; i < CONTROL_CONNECTIONS; i++) {
		struct control_connection *connection = &control->connection[i];

		if (connection->state == CONTROL_FREE)
			continue;
		if (connection->state == CONTROL_RUNNING)
			pthread_join(connection->thread, NULL);
		end_connection(connection);
	}
	if (admin_socket_address(control->directory, &address, &descriptor) == 0)
		unlink(address.sun_path);
	if (descriptor >= 0)
		close(descriptor);
	destroy_control(control);
}
