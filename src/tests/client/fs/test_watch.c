/* SPDX-License-Identifier: BSD-2-Clause */
/* Watches: what clients do is told, once, and nothing is asked while nothing happens. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client/fs/program.h"
#include "tests/main.h"

#define SOON (30 * 1000) /* ms; a test fails after it */

static rxafs_queue *queue;
static rxafs_client *watcher;
static rxafs_watch *watch;

static void open_watch(const char *path, bool attributes)
{
	struct rxafs_watch_options options = {
		.size = sizeof options, .attributes = attributes, .arg = &watch};
	struct rxafs_request asked = {0};
	rxafs_object *object;
	int result;

	watcher = open_program_client();
	ck_assert_int_eq(rxafs_create_queue(watcher, &queue), 0);
	ck_assert_int_eq(rxafs_find_path(watcher, &asked, path, true, &object), 0);
	result = rxafs_create_watch(queue, object, &asked, &options, &watch);
	ck_assert_msg(!result, "%s", rxafs_error_text(&asked, result));
	rxafs_release(object);
}

static void close_watch(void)
{
	rxafs_free_watch(watch);
	rxafs_free_queue(queue);
	ck_assert_int_eq(rxafs_close_client(watcher, 10000), 0);
	close_program_cell();
}

static struct rxafs_event expect_event(enum rxafs_event_kind kind, const char *name)
{
	struct rxafs_event event;

	ck_assert_int_eq(rxafs_next_events(queue, &event, 1, SOON), 1);
	ck_assert_msg(event.kind == kind && !strcmp(event.name, name), "event %d of \"%s\"",
		      event.kind, event.name);
	ck_assert_ptr_eq(event.watch, watch);
	ck_assert_ptr_eq(event.arg, &watch);
	return event;
}

static void expect_silence(void)
{
	struct rxafs_event event;

	ck_assert_int_eq(rxafs_next_events(queue, &event, 1, 200), 0);
}

static void append_by(rxafs_client *by, const char *path, const char *text)
{
	struct rxafs_request own = {0};
	rxafs_object *object;
	rxafs_file *file;

	ck_assert_int_eq(rxafs_find_path(by, &own, path, true, &object), 0);
	ck_assert_int_eq(rxafs_open(object, &own, O_WRONLY | O_APPEND, &file), 0);
	ck_assert_int_eq(rxafs_write(file, &own, text, strlen(text), 0), (int)strlen(text));
	ck_assert_int_eq(rxafs_flush(file, &own, false), 0);
	rxafs_close(file);
	rxafs_release(object);
}

static void append_text(const char *path, const char *text)
{
	append_by(client, path, text);
}

static void move_name(const char *name, const char *new_name)
{
	rxafs_object *root = object_at("music:");

	ck_assert_int_eq(rxafs_rename(root, &request, name, root, new_name, false), 0);
	rxafs_release(root);
}

static void remove_name(const char *name)
{
	rxafs_object *root = object_at("music:");

	ck_assert_int_eq(rxafs_unlink(root, &request, name), 0);
	rxafs_release(root);
}

START_TEST(names_of_a_directory)
{
	struct rxafs_event removed, added;

	open_program_cell();
	write_text("music:first", "1");
	open_watch("music:", false);
	expect_silence();
	write_text("music:second", "2");
	added = expect_event(RXAFS_EVENT_ADDED, "second");
	move_name("second", "third");
	removed = expect_event(RXAFS_EVENT_REMOVED, "second");
	ck_assert(rxafs_fid_same(&removed.fid, &added.fid));
	added = expect_event(RXAFS_EVENT_ADDED, "third");
	ck_assert(rxafs_fid_same(&removed.fid, &added.fid));
	remove_name("first");
	expect_event(RXAFS_EVENT_REMOVED, "first");
	/* A rename over a name: another object has it. */
	write_text("music:fourth", "4");
	expect_event(RXAFS_EVENT_ADDED, "fourth");
	move_name("fourth", "third");
	expect_event(RXAFS_EVENT_REMOVED, "fourth");
	expect_event(RXAFS_EVENT_REMOVED, "third");
	expect_event(RXAFS_EVENT_ADDED, "third");
	/* Contents are not asked for. */
	append_text("music:third", "more");
	expect_silence();
	close_watch();
}
END_TEST

START_TEST(attributes_of_entries)
{
	struct rxafs_changes changes = {.set = RXAFS_SET_MODE, .mode = 0600};
	struct rxafs_attributes attributes;
	rxafs_object *object;
	char name[16];

	open_program_cell();
	for (int i = 100; i < 180; i++) {
		snprintf(name, sizeof name, "music:%d", i);
		write_text(name, "x");
	}
	open_watch("music:", true);
	append_text("music:150", "more");
	expect_event(RXAFS_EVENT_CHANGED, "150");
	object = object_at("music:179");
	ck_assert_int_eq(rxafs_setattr(object, &request, &changes, &attributes), 0);
	rxafs_release(object);
	expect_event(RXAFS_EVENT_CHANGED, "179");
	append_text("music:150", "more");
	expect_event(RXAFS_EVENT_CHANGED, "150");
	write_text("music:200", "x");
	expect_event(RXAFS_EVENT_ADDED, "200");
	append_text("music:200", "x");
	expect_event(RXAFS_EVENT_CHANGED, "200");
	object = object_at("music:");
	changes.mode = 0700;
	ck_assert_int_eq(rxafs_setattr(object, &request, &changes, &attributes), 0);
	rxafs_release(object);
	expect_event(RXAFS_EVENT_CHANGED, "");
	expect_silence();
	close_watch();
}
END_TEST

START_TEST(a_file_and_its_end)
{
	struct rxafs_event event;

	open_program_cell();
	write_text("music:file", "1");
	open_watch("music:file", false);
	append_text("music:file", "2");
	expect_event(RXAFS_EVENT_CHANGED, "");
	append_by(watcher, "music:file", "3");
	expect_event(RXAFS_EVENT_CHANGED, "");
	remove_name("file");
	/* Removing the last link is a change, or the end at once. */
	do
		ck_assert_int_eq(rxafs_next_events(queue, &event, 1, SOON), 1);
	while (event.kind == RXAFS_EVENT_CHANGED);
	ck_assert_int_eq(event.kind, RXAFS_EVENT_GONE);
	expect_silence();
	close_watch();
}
END_TEST

/* Whoever reads late loses intermediate states only. */
START_TEST(a_slow_reader)
{
	struct rxafs_event events[64];
	bool there[40] = {false};
	char name[16];
	int count, i, seen = 0;

	open_program_cell();
	open_watch("music:", false);
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "music:%d", i);
		write_text(name, "x");
	}
	while (seen < 40) {
		count = rxafs_next_events(queue, events, 64, SOON);
		ck_assert_int_gt(count, 0);
		for (int e = 0; e < count; e++) {
			ck_assert_int_eq(events[e].kind, RXAFS_EVENT_ADDED);
			i = atoi(events[e].name);
			ck_assert(!there[i]);
			there[i] = true;
			seen++;
		}
	}
	expect_silence();
	close_watch();
}
END_TEST

START_TEST(a_server_that_starts_again)
{
	struct rxafs_event event;

	open_program_cell();
	open_watch("music:", false);
	realserver_end(&server, SIGKILL);
	realserver_start(&server);
	write_text("music:later", "x");
	/* It may have been away for the watch, too. */
	do
		ck_assert_int_eq(rxafs_next_events(queue, &event, 1, 10 * SOON), 1);
	while (event.kind == RXAFS_EVENT_FAILED || event.kind == RXAFS_EVENT_RECOVERED);
	ck_assert_int_eq(event.kind, RXAFS_EVENT_ADDED);
	ck_assert_str_eq(event.name, "later");
	close_watch();
}
END_TEST

START_TEST(an_end_while_events_are_queued)
{
	struct pollfd p;

	open_program_cell();
	open_watch("music:", true);
	p = (struct pollfd){.fd = rxafs_queue_fd(queue), .events = POLLIN};
	write_text("music:file", "x");
	ck_assert_int_eq(poll(&p, 1, SOON), 1);
	rxafs_free_watch(watch);
	watch = NULL;
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	write_text("music:other", "x");
	expect_silence();
	close_watch();
}
END_TEST

TEST_MAIN_WITHIN(120, "watch", names_of_a_directory, attributes_of_entries, a_file_and_its_end,
		 a_slow_reader, a_server_that_starts_again, an_end_while_events_are_queued)
