/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cells: options, files with faults, DNS from a name server in this process, what is remembered and
 * for how long.
 */
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <resolv.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cell/cell.h"
#include "common/clock.h"
#include "tests/asserts.h"
#include "tests/main.h"

static char folder[64];
static const char *folders[2];
static char warnings[2000], message[300];
static struct cl_cells_options options;
static struct cl_cells *cells;
static struct cl_cell *cell;
static struct cl_cell_server servers[CL_CELL_SERVERS];

static void note_warning(void *arg, const char *text)
{
	(void)arg;
	snprintf(warnings + strlen(warnings), sizeof(warnings) - strlen(warnings), "%s\n", text);
}

static void write_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void begin(void)
{
	unsetenv("AFSCELL");
	strcpy(folder, "/tmp/rxafs-cells-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	folders[0] = folder;
	options = (struct cl_cells_options){
		.folders = folders, .folder_count = 1, .no_dns = true, .warn = note_warning};
	warnings[0] = 0;
}

static void create(void)
{
	int rc = cl_cells_create(&options, &cells, message, sizeof(message));

	ck_assert_msg(rc == 0, "%s", message);
}

static void end(void)
{
	char path[128];

	cl_cells_free(cells);
	cells = NULL;
	snprintf(path, sizeof(path), "%s/CellServDB", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/ThisCell", folder);
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* The address of server `i` as text. */
static const char *address_of(int i)
{
	static char text[64];
	struct sockaddr_in sin;
	char host[32];

	memcpy(&sin, &servers[i].address, sizeof(sin));
	inet_ntop(AF_INET, &sin.sin_addr, host, sizeof(host));
	snprintf(text, sizeof(text), "%s:%u:%u", host, ntohs(sin.sin_port), servers[i].fs_port);
	return text;
}

START_TEST(files)
{
	begin();
	write_file("ThisCell", "  Example.ORG \n");
	write_file("CellServDB", "# comment\n"
				 ">example.org other.org #Example\n"
				 "10.0.0.1 #one\n"
				 "[10.0.0.2]\t#two, a clone\n"
				 "\n"
				 ">other.org#text without a blank\r\n"
				 "10.0.0.3\r\n"
				 ">empty.org #none\n");
	create();
	ck_assert_str_eq(warnings, "");
	ck_assert_str_eq(cl_cell_name(cl_cells_home(cells)), "example.org");
	ck_assert_int_eq(cl_cells_find(cells, "EXAMPLE.org", 0, &cell), 0);
	ck_assert_ptr_eq(cell, cl_cells_home(cells));
	ck_assert_ptr_eq(cell, cl_cells_at(cells, cl_cell_number(cell)));
	ck_assert_str_eq(cl_cell_linked(cell), "other.org");
	ck_assert_int_eq(cl_cell_servers(cell, 0, servers), 2);
	ck_assert_str_eq(address_of(1), "10.0.0.2:7003:0");
	/* With a dot: the read-write path. */
	ck_assert_int_eq(cl_cells_find(cells, ".other.org", 0, &cell), 0);
	ck_assert_int_eq(cl_cell_servers(cell, 0, servers), 1);
	ck_assert_int_eq(cl_cells_find(cells, "empty.org", 0, &cell), 0);
	ck_assert_int_eq(cl_cell_servers(cell, 0, servers), -ENOENT);
	ck_assert_int_eq(cl_cells_find(cells, "unknown.org", 0, &cell), -ENOENT);
	ck_assert_int_eq(cl_cells_find(cells, "a/b", 0, &cell), -EINVAL);
	ck_assert_int_eq(cl_cells_find(cells, "", 0, &cell), -EINVAL);
	ck_assert_int_eq(cl_cells_find(cells, "..", 0, &cell), -EINVAL);
	ck_assert_ptr_null(cl_cells_at(cells, 0));
	ck_assert_ptr_null(cl_cells_at(cells, 4));
	end();
}
END_TEST

START_TEST(faults_of_files)
{
	begin();
	write_file("CellServDB", "10.0.0.9\n"
				 ">bad..org\n"
				 "10.0.0.1\n"
				 ">good.org\n"
				 "10.0.0.x #no address\n"
				 "10.0.0.2\n"
				 ">linked.org -x\n"
				 "10.0.0.3\n"
				 ">many.org\n"
				 "1.0.0.1\n1.0.0.2\n1.0.0.3\n1.0.0.4\n1.0.0.5\n1.0.0.6\n1.0.0.7\n"
				 "1.0.0.8\n1.0.0.9\n1.0.0.10\n1.0.0.11\n1.0.0.12\n1.0.0.13\n"
				 "1.0.0.14\n1.0.0.15\n1.0.0.16\n1.0.0.17\n1.0.0.18\n1.0.0.19\n"
				 "1.0.0.20\n1.0.0.21\n1.0.0.22\n");
	create();
	ck_assert_ptr_nonnull(strstr(warnings, "cell many.org: only the first 20 servers"));
	ck_assert_ptr_nonnull(strstr(warnings, "line 1: no cell begins"));
	ck_assert_ptr_nonnull(strstr(warnings, "line 2: this is no name of a cell"));
	ck_assert_ptr_nonnull(strstr(warnings, "line 5: this is no address"));
	ck_assert_ptr_nonnull(strstr(warnings, "line 7: this is no name of a linked cell"));
	ck_assert_int_eq(cl_cells_find(cells, "good.org", 0, &cell), 0);
	ck_assert_int_eq(cl_cell_servers(cell, 0, servers), 1);
	ck_assert_int_eq(cl_cells_find(cells, "many.org", 0, &cell), 0);
	ck_assert_int_eq(cl_cell_servers(cell, 0, servers), CL_CELL_SERVERS);
	ck_assert_int_eq(cl_cells_find(cells, "bad.org", 0, &cell), -ENOENT);
	ck_assert_ptr_null(cl_cells_home(cells));
	end();
}
END_TEST

START_TEST(addresses_of_one_family)
{
	begin();
	write_file("CellServDB", ">both.org\n2001:db8::1\n10.0.0.1\n[2001:db8::2]\n10.0.0.2\n"
				 ">six.org\n2001:db8::1\n");
	create();
	ck_assert_str_eq(warnings, "");
	ck_assert_int_eq(cl_cells_find(cells, "both.org", 0, &cell), 0);
	ck_assert_int_eq(cl_cell_servers(cell, 0, servers), 4);
	cl_cells_free(cells);
	options.ipv4_only = true;
	create();
	ck_assert_ptr_nonnull(strstr(warnings, "cell both.org: IPv6 addresses"));
	ck_assert_ptr_nonnull(strstr(warnings, "cell six.org: IPv6 addresses"));
	ck_assert_int_eq(cl_cells_find(cells, "both.org", 0, &cell), 0);
	ck_assert_int_eq(cl_cell_servers(cell, 0, servers), 2);
	ck_assert_int_eq(servers[0].address.ss_family, AF_INET);
	ck_assert_int_eq(cl_cells_find(cells, "six.org", 0, &cell), 0);
	ck_assert_int_eq(cl_cell_servers(cell, 0, servers), -ENOENT);
	end();
}
END_TEST

static bool begin_any(void *arg, const char *name, const char *linked)
{
	ck_assert_uint_lt(strlen(name), CL_CELL_NAME);
	ck_assert_uint_lt(strlen(linked), CL_CELL_NAME);
	++*(unsigned *)arg;
	return true;
}

static void take_any(void *arg, const struct cl_cell_server *server)
{
	(void)arg;
	ck_assert_uint_gt(server->len, 0);
}

START_TEST(random_files)
{
	static const char alphabet[] = ">>>\n\n\n  \t\r##[[]]..--::0123456789abcZ\xff\x01";
	struct cl_cell_source source = {.name = "random"};
	unsigned seen = 0, seed = 7;
	struct cl_cell_reader reader = {begin_any, take_any, &seen};

	for (int i = 0; i < 20000; i++) {
		size_t length = (size_t)rand_r(&seed) % 400;
		char *text = malloc(length + 1), home[CL_CELL_NAME];

		for (size_t k = 0; k < length; k++)
			text[k] = alphabet[(size_t)rand_r(&seed) % (sizeof(alphabet) - 1)];
		text[length] = 0;
		cl_cell_read_list(text, &source, &reader);
		cl_cell_read_home(text, home);
		free(text);
	}
	ck_assert_uint_gt(seen, 1000);
}
END_TEST

START_TEST(given_cells_win)
{
	const char *const given[] = {"Example.org=127.0.0.1:1234:5678,127.0.0.2",
				     "six.org=[::1]:7010"};

	begin();
	write_file("CellServDB", ">example.org\n10.0.0.1\n");
	options.given = given;
	options.given_count = 2;
	options.home = "example.ORG";
	create();
	cell = cl_cells_home(cells);
	ck_assert_int_eq(cl_cell_servers(cell, 0, servers), 2);
	ck_assert_str_eq(address_of(0), "127.0.0.1:1234:5678");
	ck_assert_str_eq(address_of(1), "127.0.0.2:7003:0");
	ck_assert_int_eq(cl_cells_find(cells, "six.org", 0, &cell), 0);
	ck_assert_int_eq(cl_cell_servers(cell, 0, servers), 1);
	ck_assert_int_eq(servers[0].address.ss_family, AF_INET6);
	end();
}
END_TEST

START_TEST(faults_of_options)
{
	static const char *const bad[] = {"example.org",	   "=1.2.3.4",
					  "example.org=",	   "example.org=1.2.3.4:x",
					  "example.org=1.2.3.4:0", "example.org=1.2.3.4:1:70000",
					  "example.org=[::1",	   "example.org=1.2.3.4:1:2:3"};

	begin();
	options.given_count = 1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		options.given = &bad[i];
		message[0] = 0;
		ck_assert_int_eq(cl_cells_create(&options, &cells, message, sizeof(message)),
				 -EINVAL);
		ck_assert_str_ne(message, "");
	}
	options.given_count = 0;
	options.home = "no name";
	ck_assert_int_eq(cl_cells_create(&options, &cells, message, sizeof(message)), -EINVAL);
	setenv("AFSCELL", "from.environment", 1);
	options.home = NULL;
	create();
	ck_assert_str_eq(cl_cell_name(cl_cells_home(cells)), "from.environment");
	end();
}
END_TEST

/* -- a resolver that is told what to answer -- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned asked;
	bool hold;
	int result;
	uint32_t ttl_s;
} script = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int resolve(void *arg, const char *name, unsigned limit_ms,
		   struct cl_cell_server found[CL_CELL_SERVERS], uint32_t *ttl_s)
{
	int result;

	(void)arg, (void)name;
	ck_assert_uint_le(limit_ms, 10000);
	pthread_mutex_lock(&script.lock);
	script.asked++;
	pthread_cond_broadcast(&script.changed);
	while (script.hold)
		pthread_cond_wait(&script.changed, &script.lock);
	result = script.result;
	*ttl_s = script.ttl_s;
	pthread_mutex_unlock(&script.lock);
	if (result > 0) {
		struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(7003)};

		memcpy(&found[0].address, &sin, sizeof(sin));
		found[0].len = sizeof(sin);
	}
	return result;
}

static void begin_with_resolver(void)
{
	begin();
	options.no_dns = false;
	options.resolve = resolve;
	script.asked = 0;
	script.hold = false;
}

START_TEST(what_dns_refuses_is_remembered)
{
	begin_with_resolver();
	create();
	script.result = 0;
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(cl_cells_find(cells, "not.a.cell", 0, &cell), -ENOENT);
	ck_assert_uint_eq(script.asked, 1);
	script.result = -ETIMEDOUT;
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(cl_cells_find(cells, "silent.cell", 0, &cell), -ETIMEDOUT);
	ck_assert_uint_eq(script.asked, 2);
	/* No question for these. */
	ck_assert_int_eq(cl_cells_find(cells, "HEAD", 0, &cell), -ENOENT);
	ck_assert_int_eq(cl_cells_find(cells, ".git", 0, &cell), -ENOENT);
	ck_assert_uint_eq(script.asked, 2);
	/* The time of the caller is over. */
	ck_assert_int_eq(cl_cells_find(cells, "late.cell", 1, &cell), -ETIMEDOUT);
	ck_assert_uint_eq(script.asked, 2);
	script.result = 1;
	script.ttl_s = 1;
	ck_assert_int_eq(cl_cells_find(cells, "real.cell", 0, &cell), 0);
	ck_assert_int_eq(cl_cells_find(cells, "Real.Cell", 0, &cell), 0);
	ck_assert_int_eq(cl_cell_servers(cell, 0, servers), 1);
	/* A life of a second counts as ten minutes. */
	ck_assert_uint_eq(script.asked, 3);
	ck_assert_ptr_eq(cl_cells_at(cells, 1), cell);
	/* More names than are remembered. */
	script.result = 0;
	for (int i = 0; i < 600; i++) {
		char name[32];

		snprintf(name, sizeof(name), "n%d.cell", i);
		ck_assert_int_eq(cl_cells_find(cells, name, 0, &cell), -ENOENT);
	}
	ck_assert_int_eq(cl_cells_find(cells, "real.cell", 0, &cell), 0);
	end();
}
END_TEST

static void *find_cell(void *arg)
{
	struct cl_cell *found = NULL;

	(void)arg;
	ck_assert_int_eq(cl_cells_find(cells, "slow.cell", 0, &found), 0);
	return found;
}

START_TEST(one_thread_asks_for_all)
{
	pthread_t threads[8];
	void *found, *first = NULL;

	begin_with_resolver();
	write_file("CellServDB", ">known.org\n10.0.0.1\n");
	create();
	script.hold = true;
	script.result = 1;
	for (int i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, find_cell, NULL);
	pthread_mutex_lock(&script.lock);
	while (script.asked == 0)
		pthread_cond_wait(&script.changed, &script.lock);
	pthread_mutex_unlock(&script.lock);
	/* Other cells do not wait for it. */
	ck_assert_int_eq(cl_cells_find(cells, "known.org", 0, &cell), 0);
	pthread_mutex_lock(&script.lock);
	script.hold = false;
	pthread_cond_broadcast(&script.changed);
	pthread_mutex_unlock(&script.lock);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], &found);
		ck_assert_ptr_nonnull(found);
		if (i == 0)
			first = found;
		ck_assert_ptr_eq(found, first);
	}
	ck_assert_uint_eq(script.asked, 1);
	end();
}
END_TEST

/* -- a name server -- */

static struct sockaddr_in name_server;
static int name_socket;
static _Atomic bool mute;

static size_t put_name(uint8_t *to, const char *name)
{
	size_t n = 0;

	while (*name) {
		size_t length = strcspn(name, ".");

		to[n++] = (uint8_t)length;
		memcpy(to + n, name, length);
		n += length;
		name += length + (name[length] == '.');
	}
	to[n++] = 0;
	return n;
}

static size_t put_words(uint8_t *to, size_t count, const uint16_t *words)
{
	for (size_t i = 0; i < count; i++) {
		to[2 * i] = (uint8_t)(words[i] >> 8);
		to[2 * i + 1] = (uint8_t)words[i];
	}
	return 2 * count;
}

/* A record whose name is that of the question. */
static size_t put_record(uint8_t *to, uint16_t type, uint32_t ttl, const void *data, size_t size)
{
	const uint16_t head[] = {0xc00c,	type,	       ns_c_in, (uint16_t)(ttl >> 16),
				 (uint16_t)ttl, (uint16_t)size};
	size_t n = put_words(to, 6, head);

	memcpy(to + n, data, size);
	return n + size;
}

static size_t put_srv(uint8_t *to, uint16_t priority, uint16_t port, const char *host)
{
	const uint16_t words[] = {priority, 10, port};
	uint8_t data[300];
	size_t n = put_words(data, 3, words);

	n += put_name(data + n, host);
	return put_record(to, ns_t_srv, 5000, data, n);
}

/* The answer's records for a question. -1: there is no such name. */
static int answer_for(const char *name, uint16_t type, uint8_t *to, size_t *used)
{
	uint8_t afsdb[300] = {0, 1}, other[300] = {0, 2};

	*used = 0;
	if (strcmp(name, "_afs3-vlserver._udp.srv.org") == 0 && type == ns_t_srv) {
		*used = put_srv(to, 20, 7103, "b.srv.org");
		*used += put_srv(to + *used, 10, 7003, "a.srv.org");
		*used += put_srv(to + *used, 30, 7003, "gone.srv.org");
		return 3;
	}
	if (strcmp(name, "afsdb.org") == 0 && type == 18) {
		*used = put_record(to, 18, 100000, other, 2 + put_name(other + 2, "no.afsdb.org"));
		*used += put_record(to + *used, 18, 100000, afsdb,
				    2 + put_name(afsdb + 2, "a.srv.org"));
		return 2;
	}
	if (strcmp(name, "a.srv.org") == 0 && type == ns_t_a) {
		*used = put_record(to, ns_t_a, 3000, "\x0a\x01\x02\x03", 4);
		return 1;
	}
	if (strcmp(name, "b.srv.org") == 0 && type == ns_t_a) {
		*used = put_record(to, ns_t_a, 700, "\x0a\x01\x02\x04", 4);
		return 1;
	}
	return strstr(name, "srv.org") || strstr(name, "afsdb.org") ? 0 : -1;
}

static void *serve_names(void *arg)
{
	for (;;) {
		uint8_t query[600], reply[2000];
		struct sockaddr_in from;
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(name_socket, query, sizeof(query), 0, (void *)&from, &len);
		char name[NS_MAXDNAME];
		size_t end, used;
		int count;

		if (n < 20)
			return arg;
		if (mute)
			continue;
		end = 12 + (size_t)dn_expand(query, query + n, query + 12, name, sizeof(name)) + 4;
		memcpy(reply, query, end);
		count = answer_for(name, (uint16_t)(query[end - 4] << 8 | query[end - 3]),
				   reply + end, &used);
		reply[2] = 0x81;
		reply[3] = count < 0 ? 0x83 : 0x80;
		memset(reply + 6, 0, 6);
		reply[7] = count > 0 ? (uint8_t)count : 0;
		sendto(name_socket, reply, end + used, 0, (void *)&from, len);
	}
}

START_TEST(dns)
{
	socklen_t len = sizeof(name_server);
	uint64_t began;
	uint32_t ttl;
	pthread_t thread;

	name_server = (struct sockaddr_in){.sin_family = AF_INET,
					   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	name_socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(name_socket, (void *)&name_server, len), 0);
	ck_assert_int_eq(getsockname(name_socket, (void *)&name_server, &len), 0);
	pthread_create(&thread, NULL, serve_names, NULL);
	ck_assert_int_eq(cl_cell_ask_dns(&name_server, "srv.org", 10000, servers, &ttl), 2);
	ck_assert_str_eq(address_of(0), "10.1.2.3:7003:0");
	ck_assert_str_eq(address_of(1), "10.1.2.4:7103:0");
	ck_assert_uint_eq(servers[1].priority, 20);
	ck_assert_uint_eq(ttl, 700);
	ck_assert_int_eq(cl_cell_ask_dns(&name_server, "afsdb.org", 10000, servers, &ttl), 1);
	ck_assert_str_eq(address_of(0), "10.1.2.3:7003:0");
	ck_assert_uint_eq(ttl, 3000);
	ck_assert_int_eq(cl_cell_ask_dns(&name_server, "none.net", 10000, servers, &ttl), 0);
	mute = true;
	began = monotonic_ns();
	ck_assert_int_eq(cl_cell_ask_dns(&name_server, "silent.net", 2000, servers, &ttl),
			 -ETIMEDOUT);
	ck_assert_uint_lt(monotonic_ns() - began, (uint64_t)9 * NS_PER_S);
	sendto(name_socket, "end", 3, 0, (void *)&name_server, len);
	pthread_join(thread, NULL);
	close(name_socket);
}
END_TEST

START_TEST(malformed_replies)
{
	uint8_t whole[600] = {0};
	struct cl_dns_record records[CL_CELL_SERVERS];
	size_t n = 12;
	unsigned seed = 1;

	whole[5] = 1; /* a question */
	whole[7] = 2; /* two answers */
	n += put_name(whole + n, "_afs3-vlserver._udp.srv.org");
	n += put_words(whole + n, 2, (uint16_t[]){ns_t_srv, ns_c_in});
	n += put_srv(whole + n, 1, 7003, "host.srv.org");
	n += put_srv(whole + n, 1, 7003, "host.srv.org");
	ck_assert_int_eq(cl_cell_read_dns(&(struct cl_dns_reply){whole, n}, ns_t_srv, records), 2);
	/* Cut at each place: an error, and nothing outside is read. */
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *part = malloc(cut ? cut : 1);

		memcpy(part, whole, cut);
		ck_assert_int_eq(
			cl_cell_read_dns(&(struct cl_dns_reply){part, cut}, ns_t_srv, records),
			-EIO);
		free(part);
	}
	for (int i = 0; i < 20000; i++) {
		uint8_t *bad = malloc(n);
		int rc;

		memcpy(bad, whole, n);
		for (int k = 0; k < 3; k++)
			bad[(size_t)rand_r(&seed) % n] = (uint8_t)rand_r(&seed);
		rc = cl_cell_read_dns(&(struct cl_dns_reply){bad, n}, ns_t_srv, records);
		ck_assert_int_le(rc, CL_CELL_SERVERS);
		free(bad);
	}
}
END_TEST

TEST_MAIN_WITHIN(60, "cells", files, faults_of_files, addresses_of_one_family, random_files,
		 given_cells_win, faults_of_options, what_dns_refuses_is_remembered,
		 one_thread_asks_for_all, dns, malformed_replies)
