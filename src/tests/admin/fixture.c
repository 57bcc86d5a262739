/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/admin/fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

void fixture_shell(const char *format, ...)
{
	char command[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	ck_assert_msg(system(command) == 0, "%s failed", command);
}

static void open_store(struct fixture *f, bool make)
{
	char path[128], message[STORE_MESSAGE_MAX];
	struct store_options options = {.path = path};

	snprintf(path, sizeof(path), "%s/store", f->folder);
	if (make)
		ck_assert_msg(store_make(&options, message) == 0, "%s", message);
	ck_assert_msg(store_open(&options, &f->store, message) == 0, "%s", message);
}

void fixture_open(struct fixture *f)
{
	const char *tmp = getenv("TMPDIR");

	*f = (struct fixture){.directory = -1};
	snprintf(f->folder, sizeof(f->folder), "%s/rxwire-admin-XXXXXX",
		 tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	ck_assert(mkdtemp(f->folder) != NULL);
	open_store(f, true);
}

void fixture_again(struct fixture *f)
{
	open_store(f, false);
}

void fixture_close(struct fixture *f)
{
	f->store->ops->close(f->store);
	if (f->directory >= 0)
		close(f->directory);
	json_decref(f->last);
	fixture_shell("chmod -R u+rwX '%s'; rm -rf '%s'", f->folder, f->folder);
}

static void changed(void *arg, const struct store_changes *changes)
{
	struct fixture *f = arg;

	ck_assert(changes->count > 0);
	for (unsigned i = 0; i < changes->count; i++)
		f->change[f->changes++ % CHANGES_KEPT] = changes->change[i];
}

/* StoreACL of a client: rights for one more user. */
static void disturb(struct fixture *f)
{
	const struct store_caller caller = {.id = 1, .administrator = true, .unrestricted = true};
	const struct store_fid root = {f->disturbed, 1, 1};
	struct store_changes changes = {0};
	struct store_status status;
	struct store_acl acl;

	f->disturbed = 0;
	ck_assert_int_eq(f->store->ops->acl(f->store, &caller, &root, &acl, &status), 0);
	ck_assert_int_eq(store_acl_add(&acl, false, 77, STORE_READ | STORE_LOOKUP), 0);
	ck_assert_int_eq(f->store->ops->set_acl(f->store, &caller, &root, &acl, &status, &changes),
			 0);
}

static bool forbids(void *arg, const struct store_acl *acl)
{
	struct fixture *f = arg;
	static const int32_t ids[] = {STORE_ANYUSER};
	struct store_volume volume;

	if (f->disturbed)
		disturb(f);
	if (f->watched) {
		ck_assert_int_eq(f->store->ops->volume(f->store, f->watched, &volume), 0);
		ck_assert(!volume.online);
	}
	return f->guarded &&
	       store_acl_rights(acl, &(struct store_caller){.ids = ids, .id_count = 1}) &
		       STORE_INSERT;
}

static void answer(void *arg, json_t *object)
{
	struct fixture *f = arg;
	const char *reason = json_string_value(json_object_get(object, "reason"));
	char *line = json_dumps(object, JSON_COMPACT);

	/* A request must be a single line. */
	ck_assert(line != NULL && !strchr(line, '\n'));
	free(line);
	f->progress += json_object_get(object, "progress") != NULL;
	f->faults += json_object_get(object, "fault") != NULL;
	f->mounts += json_object_get(object, "mount") != NULL;
	if (reason) {
		f->skipped++;
		snprintf(f->reason, sizeof(f->reason), "%s", reason);
	}
	if (json_object_get(object, "result") || json_object_get(object, "error")) {
		f->ends++;
		f->last = json_incref(object);
	}
}

static bool stopped(void *arg)
{
	struct fixture *f = arg;

	f->asked++;
	while (f->held && *f->held)
		usleep(1000);
	if (f->touched)
		utimensat(AT_FDCWD, f->touched, NULL, 0);
	if (f->killed && f->asked == f->stop_after)
		raise(SIGKILL);
	return f->asked == f->stop_after || (f->stop_after && f->asked > f->stop_after);
}

int fixture_ask_json(struct fixture *f, const json_t *request)
{
	char path[128];
	struct admin_options options = {.store = f->store,
					.directory = path,
					.changed = changed,
					.forbids = forbids,
					.arg = f};
	struct admin_output output = {
		.answer = answer, .stopped = stopped, .arg = f, .directory = f->directory};
	int status;

	snprintf(path, sizeof(path), "%s/store", f->folder);
	json_decref(f->last);
	f->last = NULL;
	f->ends = f->skipped = f->progress = f->faults = f->mounts = f->asked = 0;
	status = admin_execute(&options, request, &output);
	ck_assert_uint_eq(f->ends, 1);
	ck_assert_int_eq(json_integer_value(json_object_get(f->last, "status")), status);
	return status;
}

static int ask(struct fixture *f, const char *format, va_list args)
{
	char text[4096];
	json_error_t error;
	json_t *request;
	int status;

	ck_assert((size_t)vsnprintf(text, sizeof(text), format, args) < sizeof(text));
	request = json_loads(text, JSON_DECODE_ANY, &error);
	ck_assert_msg(request != NULL, "%s: %s", text, error.text);
	status = fixture_ask_json(f, request);
	json_decref(request);
	return status;
}

int fixture_ask(struct fixture *f, const char *format, ...)
{
	va_list args;
	int status;

	va_start(args, format);
	status = ask(f, format, args);
	va_end(args);
	return status;
}

bool fixture_kill(struct fixture *f, unsigned after, const char *request)
{
	int status;
	pid_t pid;

	f->store->ops->close(f->store);
	f->killed = true;
	f->stop_after = after;
	pid = fork();
	if (pid < 0)
		ck_abort_msg("fork failed");
	if (!pid) {
		open_store(f, false);
		fixture_ask(f, "%s", request);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL), "%d",
		      status);
	f->killed = false;
	f->stop_after = 0;
	open_store(f, false);
	return status != 0;
}

static const char *error_of(const struct fixture *f)
{
	const char *text = json_string_value(json_object_get(f->last, "error"));

	return text ? text : "";
}

const json_t *fixture_do(struct fixture *f, const char *format, ...)
{
	va_list args;
	int status;

	va_start(args, format);
	status = ask(f, format, args);
	va_end(args);
	ck_assert_msg(status == 0, "%s: %s", format, error_of(f));
	return json_object_get(f->last, "result");
}

void fixture_refuses(struct fixture *f, int status, const char *part, const char *format, ...)
{
	va_list args;
	int got;

	va_start(args, format);
	got = ask(f, format, args);
	va_end(args);
	ck_assert_msg(got == status, "%s: %d: %s", format, got, error_of(f));
	ck_assert_msg(strstr(error_of(f), part) != NULL, "no \"%s\" in: %s", part, error_of(f));
}

const char *fixture_directory(struct fixture *f, const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", f->folder, name);
	mkdir(path, 0700);
	if (f->directory >= 0)
		close(f->directory);
	f->directory = open(path, O_RDONLY | O_DIRECTORY);
	ck_assert_int_ge(f->directory, 0);
	return path;
}
