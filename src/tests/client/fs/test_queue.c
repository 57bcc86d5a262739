/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations on queues: each ends once, whoever ends it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/client/fs/program.h"
#include "tests/main.h"

#define SOON (30 * 1000) /* ms; a test fails after it */

static rxafs_queue *queue;
static rxafs_object *root;

static void open_queue(void)
{
	open_program_cell();
	ck_assert_int_eq(rxafs_create_queue(client, &queue), 0);
}

static void close_queue(void)
{
	rxafs_free_queue(queue);
	close_program_cell();
}

static struct rxafs_operation operation_of(enum rxafs_opcode code)
{
	return (struct rxafs_operation){.size = sizeof(struct rxafs_operation), .code = code};
}

/* Submits it, and waits for its end. */
static int64_t run_alone(struct rxafs_operation *op)
{
	struct rxafs_event event;

	ck_assert_int_eq(rxafs_submit(queue, op), 0);
	ck_assert_int_eq(rxafs_next_events(queue, &event, 1, SOON), 1);
	ck_assert_int_eq(event.kind, RXAFS_EVENT_OPERATION);
	ck_assert_ptr_eq(event.operation, op);
	ck_assert_ptr_eq(event.arg, op->arg);
	return op->result;
}

START_TEST(each_operation_of_a_file)
{
	struct rxafs_operation op;
	struct rxafs_lock lock = {.owner = 1, .end = UINT64_MAX, .type = F_RDLCK};
	struct rxafs_changes changes = {.set = RXAFS_SET_MODE, .mode = 0600};
	rxafs_object *object;
	rxafs_file *file;
	char buffer[16] = "";

	open_queue();
	op = operation_of(RXAFS_OP_CREATE);
	op.object = object_at("music:");
	op.name = "file";
	op.mode = 0644;
	op.flags = O_RDWR | O_EXCL;
	op.arg = &op;
	ck_assert_int_eq(run_alone(&op), 0);
	rxafs_release(op.object);
	object = op.found;
	file = op.opened;

	op = operation_of(RXAFS_OP_WRITE);
	op.file = file;
	op.buffer = "content";
	op.length = 7;
	ck_assert_int_eq(run_alone(&op), 7);
	op = operation_of(RXAFS_OP_FLUSH);
	op.file = file;
	op.flags = true;
	ck_assert_int_eq(run_alone(&op), 0);
	op = operation_of(RXAFS_OP_READ);
	op.file = file;
	op.buffer = buffer;
	op.length = sizeof buffer;
	op.offset = 3;
	ck_assert_int_eq(run_alone(&op), 4);
	ck_assert_str_eq(buffer, "tent");
	op = operation_of(RXAFS_OP_SET_LOCK);
	op.file = file;
	op.lock = &lock;
	ck_assert_int_eq(run_alone(&op), 0);
	lock.type = F_UNLCK;
	ck_assert_int_eq(run_alone(&op), 0);
	op = operation_of(RXAFS_OP_TRUNCATE);
	op.file = file;
	op.offset = 2;
	ck_assert_int_eq(run_alone(&op), 0);
	op = operation_of(RXAFS_OP_SETATTR);
	op.object = object;
	op.changes = &changes;
	ck_assert_int_eq(run_alone(&op), 0);
	op = operation_of(RXAFS_OP_GETATTR);
	op.object = object;
	ck_assert_int_eq(run_alone(&op), 0);
	ck_assert_int_eq(op.attributes.stat.st_size, 2);
	ck_assert_int_eq(op.attributes.stat.st_mode, S_IFREG | 0600);
	op = operation_of(RXAFS_OP_GETXATTR);
	op.object = object;
	op.name = "afs.cell";
	ck_assert_int_eq(run_alone(&op), 0);
	ck_assert_int_eq(memcmp(op.text, "example.org", 11), 0);
	free(op.text);
	rxafs_close(file);
	rxafs_release(object);
	close_queue();
}
END_TEST

START_TEST(each_operation_of_names)
{
	struct rxafs_operation op, found;
	rxafs_object *directory;

	open_queue();
	write_text("music:file", "x");
	root = object_at("music:");
	op = operation_of(RXAFS_OP_MKDIR);
	op.object = root;
	op.name = "directory";
	op.mode = 0755;
	ck_assert_int_eq(run_alone(&op), 0);
	directory = op.found;
	op = operation_of(RXAFS_OP_SYMLINK);
	op.object = root;
	op.name = "link";
	op.new_name = "directory/other";
	ck_assert_int_eq(run_alone(&op), 0);
	found = operation_of(RXAFS_OP_READLINK);
	found.object = op.found;
	ck_assert_int_eq(run_alone(&found), 0);
	ck_assert_str_eq(found.text, "directory/other");
	free(found.text);
	rxafs_release(op.found);
	op = operation_of(RXAFS_OP_RENAME);
	op.object = root;
	op.name = "file";
	op.new_directory = directory;
	op.new_name = "other";
	/* A file leaves its directory, so the server may refuse what a hard link has. */
	ck_assert_int_eq(run_alone(&op), 0);
	op = operation_of(RXAFS_OP_WALK);
	op.object = root;
	op.name = "link";
	op.flags = true;
	ck_assert_int_eq(run_alone(&op), 0);
	found = operation_of(RXAFS_OP_ACCESS);
	found.object = op.found;
	found.flags = 4;
	ck_assert_int_eq(run_alone(&found), 0);
	found = operation_of(RXAFS_OP_LINK);
	found.object = op.found;
	found.new_directory = directory;
	found.new_name = "again";
	ck_assert_int_eq(run_alone(&found), 0);
	rxafs_release(op.found);
	op = operation_of(RXAFS_OP_OPEN_LISTING);
	op.object = directory;
	ck_assert_int_eq(run_alone(&op), 0);
	found = operation_of(RXAFS_OP_READ_LISTING);
	found.listing = op.listing;
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(run_alone(&found), 1);
		ck_assert_int_eq(found.attributes.stat.st_size, 1);
		rxafs_release(found.found);
	}
	ck_assert_int_eq(run_alone(&found), 0);
	rxafs_close_listing(op.listing);
	op = operation_of(RXAFS_OP_UNLINK);
	op.object = directory;
	op.name = "other";
	ck_assert_int_eq(run_alone(&op), 0);
	op.name = "again";
	ck_assert_int_eq(run_alone(&op), 0);
	ck_assert_int_eq(run_alone(&op), -ENOENT);
	op = operation_of(RXAFS_OP_RMDIR);
	op.object = root;
	op.name = "directory";
	ck_assert_int_eq(run_alone(&op), 0);
	op = operation_of(RXAFS_OP_LOOKUP);
	op.object = root;
	op.name = "directory";
	ck_assert_int_eq(run_alone(&op), -ENOENT);
	op = operation_of(RXAFS_OP_STATFS);
	op.object = root;
	ck_assert_int_eq(run_alone(&op), 0);
	ck_assert_uint_gt(op.space.total, 0);
	rxafs_release(directory);
	rxafs_release(root);
	close_queue();
}
END_TEST

static int64_t walk_and_count(struct rxafs_operation *op)
{
	rxafs_object *object;
	int result = rxafs_find_path(op->arg, &op->request, "music:none", true, &object);

	return result == -ENOENT ? 42 : result;
}

START_TEST(whole_tasks)
{
	struct rxafs_operation op;

	open_queue();
	op = operation_of(RXAFS_OP_RUN);
	op.run = walk_and_count;
	op.arg = client;
	ck_assert_int_eq(run_alone(&op), 42);
	close_queue();
}
END_TEST

START_TEST(what_is_missing_is_refused)
{
	struct rxafs_operation op;

	open_queue();
	for (int code = -1; code < 40; code++) {
		op = operation_of((enum rxafs_opcode)code);
		ck_assert_int_eq(rxafs_submit(queue, &op), -EINVAL);
	}
	op = operation_of(RXAFS_OP_RUN);
	op.run = walk_and_count;
	op.size--;
	ck_assert_int_eq(rxafs_submit(queue, &op), -EINVAL);
	close_queue();
}
END_TEST

START_TEST(the_descriptor_tells)
{
	struct rxafs_event events[4];
	struct pollfd p;

	open_queue();
	p = (struct pollfd){.fd = rxafs_queue_fd(queue), .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	ck_assert_int_eq(rxafs_next_events(queue, events, 4, 0), 0);
	ck_assert_int_eq(rxafs_next_events(queue, events, 4, 10), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(rxafs_post_event(queue, &events[i]), 0);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	ck_assert_int_eq(rxafs_next_events(queue, events, 2, -1), 2);
	ck_assert_ptr_eq(events[1].arg, &events[1]);
	ck_assert_int_eq(poll(&p, 1, 0), 1);
	ck_assert_int_eq(rxafs_next_events(queue, events, 4, -1), 1);
	ck_assert_int_eq(events[0].kind, RXAFS_EVENT_POST);
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	close_queue();
}
END_TEST

#define MANY 200

static struct rxafs_operation many[MANY];

/* Names that were never looked at, and a server that is silent. */
static void begin_many(uint64_t deadline)
{
	ck_assert_int_eq(rxafs_open_volume(client, &request, NULL, "music", &root), 0);
	ck_assert_int_eq(kill(server.pid, SIGSTOP), 0);
	for (int i = 0; i < MANY; i++) {
		many[i] = operation_of(RXAFS_OP_LOOKUP);
		many[i].object = root;
		many[i].name = "name";
		many[i].request.deadline = deadline;
		ck_assert_int_eq(rxafs_submit(queue, &many[i]), 0);
	}
}

static void expect_many(int64_t result)
{
	struct rxafs_event event;

	for (int i = 0; i < MANY; i++) {
		ck_assert_int_eq(rxafs_next_events(queue, &event, 1, SOON), 1);
		ck_assert_int_eq(event.operation->result, result);
		ck_assert_int_ne(event.operation->code, 0);
		event.operation->code = 0; /* each one once */
	}
	ck_assert_int_eq(rxafs_next_events(queue, &event, 1, 0), 0);
}

static void end_many(void)
{
	ck_assert_int_eq(kill(server.pid, SIGCONT), 0);
	rxafs_release(root);
}

START_TEST(cancelled_while_the_server_is_silent)
{
	uint64_t begun;

	open_queue();
	begin_many(0);
	begun = monotonic_ns();
	for (int i = MANY; i--;)
		rxafs_cancel_operation(&many[i]);
	expect_many(-EINTR);
	ck_assert_uint_lt(monotonic_ns() - begun, 20 * (uint64_t)NS_PER_S);
	end_many();
	close_queue();
}
END_TEST

START_TEST(deadlines_hold_for_those_that_wait_for_a_turn)
{
	uint64_t begun;

	open_queue();
	begun = monotonic_ns();
	begin_many(rxafs_now() + 2 * (uint64_t)NS_PER_S);
	expect_many(-ETIMEDOUT);
	ck_assert_uint_lt(monotonic_ns() - begun, 20 * (uint64_t)NS_PER_S);
	end_many();
	close_queue();
}
END_TEST

START_TEST(an_end_with_operations_in_progress)
{
	open_queue();
	begin_many(0);
	rxafs_free_queue(queue);
	end_many();
	close_program_cell();
}
END_TEST

TEST_MAIN_WITHIN(120, "queue", each_operation_of_a_file, each_operation_of_names, whole_tasks,
		 what_is_missing_is_refused, the_descriptor_tells,
		 cancelled_while_the_server_is_silent,
		 deadlines_hold_for_those_that_wait_for_a_turn, an_end_with_operations_in_progress)
