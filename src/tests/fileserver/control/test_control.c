/* SPDX-License-Identifier: BSD-2-Clause */
/* The control socket: requests, those who send rubbish or nothing, and its end. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fileserver/base/base.h"
#include "fileserver/control/control.h"
#include "tests/main.h"
#include "volume/store/store.h"

#define LINE	16384
#define WAIT_MS 30000

static char folder[96], directory[128];
static struct store *store;
static struct fsd_control *control;
static _Atomic unsigned changes;

static void changed(void *arg, const struct store_changes *list)
{
	(void)arg;
	changes += list->count;
}

static void start(void)
{
	struct fsd_control_options options = {
		.store = store, .directory = directory, .changed = changed};
	char message[FSD_MESSAGE_MAX];

	ck_assert_msg(fsd_control_start(&options, &control, message) == 0, "%s", message);
}

static void begin(void)
{
	const char *tmp = getenv("TMPDIR");
	struct store_options options = {.path = directory};
	char message[STORE_MESSAGE_MAX];

	snprintf(folder, sizeof(folder), "%s/rxwire-control-XXXXXX",
		 tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	ck_assert(mkdtemp(folder) != NULL);
	snprintf(directory, sizeof(directory), "%s/store", folder);
	fsd_log_level(RXW_LOG_ERROR);
	ck_assert_msg(store_make(&options, message) == 0, "%s", message);
	ck_assert_msg(store_open(&options, &store, message) == 0, "%s", message);
	start();
}

static void end(void)
{
	char command[256];

	fsd_control_stop(control);
	store->ops->close(store);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
}

static int connected(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	ck_assert((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/control",
				   directory) < sizeof(address.sun_path));
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void put(int fd, const char *bytes, size_t length)
{
	ck_assert_int_eq(send(fd, bytes, length, MSG_NOSIGNAL), (ssize_t)length);
}

/* All that comes until the server closes: the last line, as an object; closes the socket. */
static json_t *answer_of(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	char *text = calloc(1, 1 << 20), *last;
	size_t length = 0;
	ssize_t n;
	json_t *object;

	while (poll(&poll_fd, 1, WAIT_MS) == 1 &&
	       (n = recv(fd, text + length, (1 << 20) - 1 - length, 0)) > 0)
		length += (size_t)n;
	close(fd);
	ck_assert_msg(length > 1 && text[length - 1] == '\n', "no line came, but \"%s\"", text);
	text[length - 1] = 0;
	last = strrchr(text, '\n');
	object = json_loads(last ? last + 1 : text, 0, NULL);
	ck_assert_msg(object != NULL, "not an object: %s", text);
	free(text);
	return object;
}

static json_t *ask(const char *line)
{
	int fd = connected();

	put(fd, line, strlen(line));
	return answer_of(fd);
}

static void check_error(json_t *answer, const char *part)
{
	const char *text = json_string_value(json_object_get(answer, "error"));

	ck_assert_msg(text && strstr(text, part), "no \"%s\" in: %s", part, text ? text : "");
	ck_assert_int_ge(json_integer_value(json_object_get(answer, "status")), 1);
	json_decref(answer);
}

static void check_result(json_t *answer)
{
	const char *text = json_string_value(json_object_get(answer, "error"));

	ck_assert_msg(json_object_get(answer, "result") != NULL, "%s", text ? text : "");
	json_decref(answer);
}

START_TEST(requests)
{
	struct stat st;
	char path[160];

	begin();
	snprintf(path, sizeof(path), "%s/control", directory);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	check_result(ask("{\"command\": \"create\", \"name\": \"v\"}\n"));
	ck_assert_uint_eq(changes, 1);
	check_result(ask("{\"command\": \"list\"}\nwhat follows is ignored"));
	check_error(ask("{\"command\": \"create\", \"name\": \"v\"}\n"), "exists already");
	end();
	ck_assert(stat(path, &st) < 0 && errno == ENOENT);
}
END_TEST

START_TEST(rubbish)
{
	static const char *const lines[] = {
		"\n",
		"{\n",
		"null\n",
		"[]\n",
		"\xff\xfe\n",
		"{}\n",
		"{\"command\": 1}\n",
		"{\"command\": \"list\", \"command\": \"list\"}\n",
		"{\"command\": \"examine\", \"volume\": \"a\\u0000b\"}\n",
		"{\"command\": \"list\"} {\"command\": \"list\"}\n"};
	char *deep = malloc(LINE + 1);
	int fd;

	begin();
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		check_error(ask(lines[i]), "request");
	memset(deep, '[', LINE);
	deep[LINE] = 0;
	check_error(ask(deep), "longer than");
	deep[LINE - 1] = '\n';
	check_error(ask(deep), "not one object");
	free(deep);
	/* A line in pieces is one line, and one that ends too early is none. */
	fd = connected();
	put(fd, "{\"comm", 6);
	put(fd, "and\": \"list\"}", 13);
	put(fd, "\n", 1);
	check_result(answer_of(fd));
	fd = connected();
	put(fd, "{\"command\": \"list\"}", 19);
	close(fd);
	check_result(ask("{\"command\": \"list\"}\n"));
	end();
}
END_TEST

/* Those who send nothing take all places; the next one is served when they go. */
START_TEST(crowded)
{
	int idle[40], fd;

	begin();
	for (int i = 0; i < 40; i++)
		idle[i] = i < 20 ? connected() : -1;
	fd = connected();
	put(fd, "{\"command\": \"list\"}\n", 20);
	for (int i = 0; i < 20; i++)
		close(idle[i]);
	check_result(answer_of(fd));
	end();
}
END_TEST

/* Send a request with `count` descriptors. */
static int send_descriptors(const char *line, int descriptor, int count)
{
	union {
		char bytes[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr align;
	} data = {0};
	struct iovec iov = {(char *)line, strlen(line)};
	struct msghdr message = {.msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = data.bytes,
				 .msg_controllen = CMSG_SPACE((size_t)count * sizeof(int))};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fd = connected();

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
	for (int i = 0; i < count; i++)
		memcpy(CMSG_DATA(header) + (size_t)i * sizeof(int), &descriptor, sizeof(int));
	ck_assert_int_gt(sendmsg(fd, &message, MSG_NOSIGNAL), 0);
	return fd;
}

/* Without those of the store, which its own threads open and close meanwhile. */
static unsigned open_descriptors(void)
{
	unsigned count = 0;
	char inside[160], link[32], file[256];

	snprintf(inside, sizeof(inside), "%s/store/", folder);
	for (int fd = 0; fd < 256; fd++) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, file, sizeof(file) - 1);
		file[n > 0 ? n : 0] = '\0';
		count += n >= 0 && strncmp(file, inside, strlen(inside)) != 0;
	}
	return count;
}

START_TEST(descriptors)
{
	int file = open("/dev/null", O_RDONLY), dir;
	unsigned before;
	char path[160];

	begin();
	check_result(ask("{\"command\": \"create\", \"name\": \"v\"}\n"));
	snprintf(path, sizeof(path), "%s/empty", folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	dir = open(path, O_RDONLY | O_DIRECTORY);
	before = open_descriptors();
	for (int count = 1; count <= 8; count++)
		check_error(answer_of(send_descriptors(
				    "{\"command\": \"import\", \"volume\": \"v\"}\n", file, count)),
			    "descriptor of a directory");
	check_error(ask("{\"command\": \"export\", \"volume\": \"v\"}\n"),
		    "descriptor of a directory");
	check_result(answer_of(send_descriptors(
		"{\"command\": \"import\", \"volume\": \"v\", \"path\": \"d\"}\n", dir, 1)));
	/* The request's own are closed, at the latest with the thread's next round; that of `create` was perhaps counted. */
	for (int i = 0; i < 1000 && open_descriptors() > before; i++)
		poll(NULL, 0, 10);
	ck_assert_uint_le(open_descriptors(), before);
	close(file);
	close(dir);
	end();
}
END_TEST

/* A request that runs long: others go on, and it ends with its client or with the server. */
START_TEST(long_requests)
{
	char path[160];
	struct store_volume volume;
	int big, dir, fd[2];

	begin();
	check_result(ask("{\"command\": \"create\", \"name\": \"v\"}\n"));
	snprintf(path, sizeof(path), "%s/big", folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	dir = open(path, O_RDONLY | O_DIRECTORY);
	big = openat(dir, "file", O_WRONLY | O_CREAT, 0600);
	/* Its holes are no data, but the bytes between are many writes. */
	for (off_t i = 0; i < 2000; i++)
		ck_assert_int_eq(pwrite(big, "x", 1, i << 16), 1);
	close(big);
	fd[0] = send_descriptors("{\"command\": \"import\", \"volume\": \"v\", \"path\": \"a\"}\n",
				 dir, 1);
	check_result(ask("{\"command\": \"list\"}\n"));
	close(fd[0]);
	fd[1] = send_descriptors("{\"command\": \"import\", \"volume\": \"v\", \"path\": \"b\"}\n",
				 dir, 1);
	fsd_control_stop(control);
	close(fd[1]);
	close(dir);
	ck_assert_int_eq(store->ops->volume_by_name(store, "v", &volume), 0);
	start();
	check_result(ask("{\"command\": \"check\"}\n"));
	end();
}
END_TEST

START_TEST(start_and_stop)
{
	struct fsd_control_options options = {.directory = directory};
	struct fsd_control *second = NULL;
	char message[FSD_MESSAGE_MAX], path[160];
	int fd;

	begin();
	/* Idle and half-finished clients do not hold up the end. */
	fd = connected();
	put(fd, "{", 1);
	fsd_control_stop(control);
	close(fd);
	snprintf(path, sizeof(path), "%s/control", directory);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	close(fd);
	ck_assert_int_eq(fsd_control_start(&options, &second, message), -1);
	ck_assert_msg(strstr(message, "not a socket") != NULL, "%s", message);
	unlink(path);
	/* The file of a killed process is replaced. */
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	ck_assert((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) <
		  sizeof(address.sun_path));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	start();
	check_result(ask("{\"command\": \"list\"}\n"));
	fsd_control_stop(NULL);
	end();
}
END_TEST

TEST_MAIN_WITHIN(120, "control socket", requests, rubbish, crowded, descriptors, long_requests,
		 start_and_stop)
