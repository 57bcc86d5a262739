/* SPDX-License-Identifier: BSD-2-Clause */
/* One request at the control socket, on a thread of its own. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fileserver/base/base.h"
#include "fileserver/control/connection.h"

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

void control_refuse(struct control_connection *connection, const char *text)
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
	struct stat st;

	if (output.directory >= 0 &&
	    (fstat(output.directory, &st) || !(S_ISDIR(st.st_mode) || S_ISSOCK(st.st_mode))))
		output.directory = -1;
	log_request(connection, request);
	admin_execute(&connection->control->admin, request, &output);
}

void *control_execute(void *arg)
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
		control_refuse(connection, "request: not one object of JSON in UTF-8 on one line");
	json_decref(request);
	atomic_store(&connection->done, true);
	if (write(connection->control->wake, &one, sizeof(one)) < 0)
		fsd_log(RXW_LOG_WARNING, "control: the end of a request was not noticed");
	return NULL;
}
