/* SPDX-License-Identifier: BSD-2-Clause */
/* Execute a request on a store that no server has open, or let its server do it. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "admin/admin.h"
#include "common/clock.h"
#include "store/real.h"
#include "tools/common/message.h"
#include "tools/common/report.h"
#include "tools/volumes/volumes.h"

#define PATIENCE_NS (2 * (uint64_t)NS_PER_S) /* for a process that has the store for a moment */
#define PAUSE_MS    20

/* -- answers -- */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static uint64_t number_of(const json_t *object, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(object, name));
}

static void take_result(struct volumes *volumes, const json_t *object)
{
	if (volumes->progress.on)
		progress_end(&volumes->progress, volumes->command,
			     number_of(json_object_get(object, "result"), "bytes"),
			     json_object_get(object, "result"),
			     number_of(json_object_get(object, "result"), "objects"));
	volumes->progress.on = false;
	volumes->status = (int)number_of(object, "status");
	volumes->failed = json_object_get(object, "error");
	if (volumes->failed)
		tools_error("%s", text_of(object, "error"));
	else
		volumes->result = json_incref(json_object_get(object, "result"));
}

void volumes_answer(void *arg, json_t *object)
{
	struct volumes *volumes = arg;
	const json_t *progress = json_object_get(object, "progress");
	json_t *fault = json_object_get(object, "fault");

	if (progress) {
		progress_update(&volumes->progress, text_of(progress, "path"),
				number_of(progress, "bytes"), number_of(progress, "total"),
				number_of(progress, "files"));
	} else if (json_object_get(object, "skipped")) {
		volumes->skipped++;
		tools_error("%s: skipped: %s", text_of(object, "skipped"),
			    text_of(object, "reason"));
	} else if (fault && volumes->json) {
		json_array_append(volumes->faults, fault);
	} else if (fault) {
		printf("%s\n", json_string_value(fault));
	} else {
		take_result(volumes, object);
	}
}

/* -- directories -- */

/*
 * Files of a store belong to one user. When root works on the store of another user, become that
 * user, so that the server can use what is made. 0, or -1 after a message.
 */
static int become_owner(const struct volumes *volumes, const struct stat *st)
{
	if (geteuid() || !st->st_uid)
		return 0;
	if (setgroups(0, NULL) == 0 && setgid(st->st_gid) == 0 && setuid(st->st_uid) == 0)
		return 0;
	tools_error("%s: cannot become its owner, the user %u: %s", volumes->store,
		    (unsigned)st->st_uid, strerror(errno));
	return -1;
}

/* Open the directory of import or export, which export makes. 0, or -1 after a message. */
static int open_directory(struct volumes *volumes, const struct stat *store)
{
	bool export = !strcmp(volumes->command, "export"), made;

	made = export && mkdir(volumes->local, 0777) == 0;
	if (export && !made && errno != EEXIST) {
		tools_error("%s: cannot be made: %s", volumes->local, strerror(errno));
		return -1;
	}
	volumes->directory = open(volumes->local, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (volumes->directory < 0) {
		tools_error("%s: %s%s", volumes->local, strerror(errno),
			    errno == ENOENT || errno == ENOTDIR ? "; give a directory" : "");
		return -1;
	}
	if (made && !geteuid() && store->st_uid &&
	    fchown(volumes->directory, store->st_uid, store->st_gid)) {
		tools_error("%s: cannot be given to the user of the store: %s", volumes->local,
			    strerror(errno));
		return -1;
	}
	return 0;
}

/* Before a store is touched. 0, or -1 after a message. */
static int prepare(struct volumes *volumes)
{
	struct stat st = {0};

	if (stat(volumes->store, &st) && errno != ENOENT) {
		tools_error("%s: %s", volumes->store, strerror(errno));
		return -1;
	}
	if (volumes->local && open_directory(volumes, &st))
		return -1;
	if (become_owner(volumes, &st))
		return -1;
	if (volumes->local && !volumes->quiet && !volumes->json && isatty(STDERR_FILENO)) {
		json_object_set_new(volumes->request, "progress", json_true());
		progress_start(&volumes->progress, true, true);
	}
	if (volumes->json)
		volumes->faults = json_array();
	return 0;
}

/* -- the store -- */

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	if (level <= 4)
		tools_error("%s", line);
}

static struct store_options options_of(const struct volumes *volumes)
{
	return (struct store_options){
		.path = volumes->store,
		.durability = STORE_LAZY, /* each request ends with a flush */
		.log = log_line,
	};
}

static int make(struct volumes *volumes)
{
	struct store_options options = options_of(volumes);
	char message[STORE_MESSAGE_MAX];

	if (store_make(&options, message)) {
		tools_error("%s", message);
		return -1;
	}
	volumes->made = true;
	return 0;
}

int volumes_init(struct volumes *volumes)
{
	if (prepare(volumes) || make(volumes))
		return TOOLS_EXIT_FAILURE;
	if (volumes->json)
		return tools_json_print(json_pack("{s:s}", "store", volumes->store)) ? 1 : 0;
	printf("made the store %s\n", volumes->store);
	return 0;
}

static void execute(struct volumes *volumes, struct store *store)
{
	struct admin_options options = {.store = store, .directory = volumes->store};
	struct admin_output output = {
		.answer = volumes_answer,
		.arg = volumes,
		.directory = volumes->directory,
	};

	volumes->status = admin_execute(&options, volumes->request, &output);
}

/*
 * Execute the request here if the store can be had, else at its server. 0; -EBUSY: neither; -1:
 * after a message.
 */
static int attempt(struct volumes *volumes)
{
	struct store_options options = options_of(volumes);
	char message[STORE_MESSAGE_MAX];
	struct store *store;
	int rc = store_open(&options, &store, message);

	if (rc == -ENOENT && !strcmp(volumes->command, "create")) {
		if (make(volumes))
			return -1;
		rc = store_open(&options, &store, message);
	}
	if (rc == -EBUSY)
		return volumes_remote(volumes) ? -EBUSY : 0;
	if (rc) {
		tools_error("%s", message);
		return -1;
	}
	execute(volumes, store);
	store->ops->close(store);
	return 0;
}

int volumes_session(struct volumes *volumes)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	uint64_t start = monotonic_ns();
	int rc;

	if (prepare(volumes))
		return TOOLS_EXIT_FAILURE;
	/* Another rxvol has it for a moment; a server that starts or stops takes no requests. */
	while ((rc = attempt(volumes)) == -EBUSY && monotonic_ns() - start < PATIENCE_NS)
		nanosleep(&pause, NULL);
	if (rc == -EBUSY)
		tools_error("%s: another process has the store open, and takes no requests at "
			    "%s/" ADMIN_SOCKET ": wait until it ends, or stop it",
			    volumes->store, volumes->store);
	if (rc)
		return TOOLS_EXIT_FAILURE;
	if (!volumes->result && !volumes->failed) {
		tools_error(
			"no result: the server of %s ended or closed the connection; see its log",
			volumes->store);
		return TOOLS_EXIT_FAILURE;
	}
	return volumes->result ? volumes_show(volumes) : volumes->status;
}
