/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program of `replay`, in the guest and beside the replayed log.
 *
 *   replay_writers device DEVICE LOG
 *       makes the device "replay" of dm-log-writes, /dev/dm-0
 *   replay_writers work FOLDER COUNT
 *       makes a store in strict mode; each writer does COUNT operations, and marks each in the log
 *   replay_writers check FOLDER ACKNOWLEDGED...
 *       the store has what each writer acknowledged, and is sound
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/volume/store/model.h"
#include "tests/volume/store/state.h"
#include "volume/store/upkeep.h"

#define WRITERS 4
#define NAME	"replay"

static struct store *store;
static uint32_t volume;
static uint32_t count; /* constant while writers run */

static void must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: result %d\n", what, result);
	exit(EXIT_FAILURE);
}

/* -- the device -- */

struct request {
	struct dm_ioctl head;
	char rest[1024];
};

static void call(unsigned long command, struct request *request, uint32_t flags)
{
	int fd = open("/dev/mapper/control", O_RDWR);

	request->head.version[0] = DM_VERSION_MAJOR;
	request->head.data_size = sizeof(*request);
	request->head.data_start = sizeof(request->head);
	request->head.flags = flags;
	strcpy(request->head.name, NAME);
	if (fd < 0 || ioctl(fd, command, request) < 0)
		must(-errno, "device mapper");
	close(fd);
}

static void make_device(const char *device, const char *log)
{
	struct request request = {0};
	struct dm_target_spec *spec = (struct dm_target_spec *)request.rest;
	int fd = open(device, O_RDONLY);
	uint64_t bytes = 0;

	if (fd < 0 || ioctl(fd, BLKGETSIZE64, &bytes) < 0)
		must(-errno, device);
	close(fd);
	call(DM_DEV_CREATE, &request, 0);
	memset(&request, 0, sizeof(request));
	request.head.target_count = 1;
	spec->length = bytes / 512;
	strcpy(spec->target_type, "log-writes");
	snprintf(request.rest + sizeof(*spec), 200, "%s %s", device, log);
	call(DM_TABLE_LOAD, &request, 0);
	memset(&request, 0, sizeof(request));
	call(DM_DEV_SUSPEND, &request, 0);
}

static void mark(const char *text)
{
	struct request request = {0};
	struct dm_target_msg *message = (struct dm_target_msg *)request.rest;

	snprintf(message->message, 100, "mark %s", text);
	call(DM_TARGET_MSG, &request, 0);
}

/* -- writers -- */

static void *write_all(void *arg)
{
	unsigned writer = *(const unsigned *)arg;
	struct model model;
	char text[40];

	model_begin(&model);
	for (uint32_t n = 0; n < count; n++) {
		must(model_perform(store, volume, &model, writer, n), "operation");
		snprintf(text, sizeof(text), "%u.%u", writer, n + 1);
		mark(text);
	}
	return NULL;
}

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	fprintf(stderr, "%d: %s\n", level, line);
}

static void open_store(const char *path)
{
	const struct store_options options = {
		.path = path, .durability = STORE_STRICT, .log = log_line};
	char message[STORE_MESSAGE_MAX] = "";
	int result = store_open(&options, &store, message);

	must(result, message);
}

static void work(const char *path, uint32_t operations)
{
	const struct store_options options = {.path = path};
	const struct store_new_volume new = {.name = "v"};
	char message[STORE_MESSAGE_MAX] = "", name[16];
	unsigned number[WRITERS];
	pthread_t thread[WRITERS];

	must(store_make(&options, message), message);
	open_store(path);
	must(store_volume_create(store, &new, &volume), "volume");
	for (unsigned i = 0; i < WRITERS; i++) {
		snprintf(name, sizeof(name), "w%u", i);
		must(state_create(store, volume, name, STORE_DIR, NULL), "directory");
	}
	mark("begin");
	count = operations;
	for (unsigned i = 0; i < WRITERS; i++) {
		number[i] = i;
		must(-pthread_create(&thread[i], NULL, write_all, &number[i]), "thread");
	}
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	puts("WORKED");
	fflush(stdout);
	/* Without closing the store. */
	_exit(EXIT_SUCCESS);
}

/* -- checking -- */

static void print_fault(void *arg, const char *line)
{
	(void)arg;
	fprintf(stderr, "%s\n", line);
}

static void check(const char *path, char **acknowledged)
{
	struct store_volume about;
	int faults;

	open_store(path);
	must(store->ops->volume_next(store, 0, &about), "volume");
	volume = about.id;
	for (unsigned i = 0; i < WRITERS; i++) {
		struct model model;
		uint32_t next = 0;

		model_begin(&model);
		if (model_follow(store, volume, &model, i, &next,
				 (uint32_t)strtoul(acknowledged[i], NULL, 10)))
			continue;
		fprintf(stderr, "writer %u is not as after %s operations\n", i, acknowledged[i]);
		exit(EXIT_FAILURE);
	}
	faults = store_check(store, &(struct store_checker){.each = print_fault});
	must(faults, "check");
	store->ops->close(store);
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "device"))
		make_device(argv[2], argv[3]);
	else if (argc == 4 && !strcmp(argv[1], "work"))
		work(argv[2], (uint32_t)strtoul(argv[3], NULL, 10));
	else if (argc == 3 + WRITERS && !strcmp(argv[1], "check"))
		check(argv[2], argv + 3);
	else
		return 2;
	return EXIT_SUCCESS;
}
