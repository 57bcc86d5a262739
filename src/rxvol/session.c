/* SPDX-License-Identifier: BSD-2-Clause */
/* Execute a request on a store that no server has open, or let its server do it. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "admin/admin.h"
#include "common/clock.h"
#include "program/message.h"
#include "program/report.h"
#include "rxvol/volumes.h"
#include "volume/store/store.h"

#define PATIENCE_NS (2 * (uint64_t)NS_PER_S) /* for a process that has the store for a moment */
#define PAUSE_MS    20

/* -- answers -- */

static void show_check_progress(const struct rxvol *rxvol, uint64_t done, uint64_t all)
{
	char line[100];

	snprintf(line, sizeof(line), "%s: %llu of %llu files, directories and links",
		 rxvol->command, (unsigned long long)done, (unsigned long long)all);
	tools_progress(line);
}

static void accept_result(struct rxvol *rxvol, const json_t *object)
{
	if (rxvol->counts)
		tools_progress(NULL);
	if (rxvol->progress.on)
		progress_end(&rxvol->progress, rxvol->command,
			     tools_count_of(json_object_get(object, "result"), "bytes"),
			     json_object_get(object, "result"),
			     tools_count_of(json_object_get(object, "result"), "objects"));
	rxvol->progress.on = false;
	rxvol->status = (int)tools_count_of(object, "status");
	rxvol->failed = json_object_get(object, "error");
	/*
	 * The end of the server interrupts a request. The answer has no reader after the end of
	 * rxvol.
	 */
	if (rxvol->failed && !strcmp(tools_text_of(object, "error"), "interrupted"))
		tools_error("interrupted: the server of %s ends; give the command again",
			    rxvol->store);
	else if (rxvol->failed)
		tools_error("%s", tools_text_of(object, "error"));
	else
		rxvol->result = json_incref(json_object_get(object, "result"));
}

/* Take an answer to the request, of this process or of the server. */
static void take_answer(void *arg, json_t *object)
{
	struct rxvol *rxvol = arg;
	const json_t *progress = json_object_get(object, "progress");
	json_t *fault = json_object_get(object, "fault");
	json_t *mount = json_object_get(object, "mount");

	if (progress && rxvol->counts) {
		show_check_progress(rxvol, tools_count_of(progress, "done"),
				    tools_count_of(progress, "all"));
	} else if (progress) {
		progress_update(&rxvol->progress, tools_text_of(progress, "path"),
				tools_count_of(progress, "bytes"),
				tools_count_of(progress, "total"),
				tools_count_of(progress, "files"), 0);
	} else if (json_object_get(object, "skipped")) {
		rxvol->skipped++;
		tools_error("%s: skipped: %s", tools_text_of(object, "skipped"),
			    tools_text_of(object, "reason"));
	} else if ((fault || mount) && rxvol->json) {
		json_array_append(rxvol->faults, fault ? fault : mount);
	} else if (mount) {
		rxvol_show_mount(mount);
	} else if (fault) {
		if (rxvol->counts)
			tools_progress(NULL);
		printf("%s\n", json_string_value(fault));
	} else {
		accept_result(rxvol, object);
	}
}

/* -- a request to the server that has the store open, through its control socket -- */

/* The connected socket, or -1 with errno. */
static int connect_to_server(const char *store)
{
	struct sockaddr_un address = {0};
	int descriptor, saved, fd;
	bool connected;

	if (admin_socket_address(store, &address, &descriptor))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	connected = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	saved = errno;
	if (fd >= 0 && !connected)
		close(fd);
	if (descriptor >= 0)
		close(descriptor);
	errno = saved;
	return connected ? fd : -1;
}

/* Send the whole line, with a descriptor at its first byte unless that is -1. 0 or -1. */
static int send_line(int fd, const char *line, size_t length, int descriptor)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec iov = {(char *)line, length};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (descriptor >= 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
	}
	while (iov.iov_len) {
		n = sendmsg(fd, &message, MSG_NOSIGNAL);
		if (n < 0)
			return -1;
		iov.iov_base = (char *)iov.iov_base + n;
		iov.iov_len -= (size_t)n;
		message.msg_control = NULL;
		message.msg_controllen = 0;
	}
	return 0;
}

/* Each line of the answer is an object. */
static void receive_answers(struct rxvol *rxvol, FILE *file)
{
	char *line = NULL;
	size_t room = 0;

	while (!rxvol->result && !rxvol->failed && getline(&line, &room, file) > 0) {
		json_t *object = json_loads(line, 0, NULL);

		if (object)
			take_answer(rxvol, object);
		json_decref(object);
	}
	free(line);
}

/*
 * Send the request to the server of the store. 0: answered; -1 with errno: no server takes requests there.
 */
static int ask_server(struct rxvol *rxvol)
{
	char *line = json_dumps(rxvol->request, JSON_COMPACT), *ended = NULL;
	int fd = -1, rc = -1;
	FILE *file;

	if (line && asprintf(&ended, "%s\n", line) < 0)
		ended = NULL;
	free(line);
	if (!ended || strlen(ended) > ADMIN_LINE_MAX) {
		tools_error(ended ? "the request is too long: give fewer entries or a shorter path"
				  : "no memory");
		rxvol->failed = true;
		rxvol->status = TOOLS_EXIT_FAILURE;
		free(ended);
		return 0;
	}
	fd = connect_to_server(rxvol->store);
	if (fd >= 0)
		rc = send_line(fd, ended, strlen(ended), rxvol->directory);
	free(ended);
	file = rc ? NULL : fdopen(fd, "r");
	if (!file) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	receive_answers(rxvol, file);
	fclose(file);
	return 0;
}

/* -- directories -- */

/*
 * Files of a store belong to one user. When root works on the store of another user, become that
 * user, so that the server can use what is made. 0, or -1 after a message.
 */
static int become_owner(const struct rxvol *rxvol, const struct stat *st)
{
	if (geteuid() || !st->st_uid)
		return 0;
	if (setgroups(0, NULL) == 0 && setgid(st->st_gid) == 0 && setuid(st->st_uid) == 0)
		return 0;
	return tools_fail(-1, "%s: cannot become its owner, the user %u: %s", rxvol->store,
			  (unsigned)st->st_uid, strerror(errno));
}

/*
 * The owner of the store or, before the store is made, of the directory that it will be in, as rxpt
 * does. 0, or -1 after a message.
 */
static int find_store_owner(const struct rxvol *rxvol, struct stat *st)
{
	char *path = strdup(rxvol->store);
	int rc = path ? stat(path, st) : -1;

	if (path && rc && errno == ENOENT)
		rc = stat(dirname(path), st);
	/* Making the store will report this. */
	if (path && rc && errno == ENOENT)
		rc = 0;
	if (rc)
		tools_error("%s: %s", rxvol->store, strerror(errno));
	free(path);
	return rc;
}

int rxvol_become_owner(const struct rxvol *rxvol)
{
	struct stat st = {0};

	return find_store_owner(rxvol, &st) ? -1 : become_owner(rxvol, &st);
}

/* Open the directory of import or export, which export makes. 0, or -1 after a message. */
static int open_local_directory(struct rxvol *rxvol, const struct stat *store)
{
	bool export = !strcmp(rxvol->command, "export"), made;

	made = export && mkdir(rxvol->local, 0777) == 0;
	rxvol->made_directory = made;
	if (export && !made && errno != EEXIST)
		return tools_fail(-1, "%s: cannot be made: %s", rxvol->local, strerror(errno));
	/*
	 * Nobody shall have root give another directory away by a link in the place of the new one.
	 */
	rxvol->directory =
		open(rxvol->local, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (made ? O_NOFOLLOW : 0));
	if (rxvol->directory < 0)
		return tools_fail(-1, "%s: %s%s", rxvol->local, strerror(errno),
				  errno == ENOENT || errno == ENOTDIR ? "; give a directory"
				  : errno == EACCES && geteuid()      ? "; root can read it"
								      : "");
	if (made && !geteuid() && store->st_uid &&
	    fchown(rxvol->directory, store->st_uid, store->st_gid))
		return tools_fail(-1, "%s: cannot be given to the user of the store: %s",
				  rxvol->local, strerror(errno));
	return 0;
}

/* Whether the store can stream to it or from it, perhaps in another process. 0, or -1 after a message. */
static int check_stream(const struct rxvol *rxvol, bool dump)
{
	const char *name = rxvol->file ? rxvol->file : dump ? "standard output" : "standard input";
	struct stat st;

	if (fstat(rxvol->directory, &st))
		return tools_fail(-1, "%s: %s", name, strerror(errno));
	if (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode))
		return 0;
	return tools_fail(-1, "%s: is a %s; %s a dump as a file or by a pipe", name,
			  S_ISDIR(st.st_mode) ? "directory" : "device", dump ? "take" : "give");
}

/* -- a dump to a file: complete, or none -- */

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};
static struct {
	const char *path;
	int descriptor;
} unfinished;

/* The user of the store may not be able to remove what root has made. */
static bool drop_unfinished(void)
{
	return unlink(unfinished.path) == 0 || ftruncate(unfinished.descriptor, 0) == 0;
}

static void stop_dump(int number)
{
	drop_unfinished();
	signal(number, SIG_DFL);
	raise(number);
}

/* A new file, which a signal removes again. A signal that is ignored stays so, as below nohup. -1: errno. */
static int make_dump_file(const char *path)
{
	struct sigaction action = {.sa_handler = stop_dump}, old;
	sigset_t stops, before;

	sigemptyset(&stops);
	for (size_t i = 0; i < sizeof(stop_signals) / sizeof(stop_signals[0]); i++)
		sigaddset(&stops, stop_signals[i]);
	sigprocmask(SIG_BLOCK, &stops, &before);
	unfinished.descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (unfinished.descriptor >= 0)
		unfinished.path = path;
	for (size_t i = 0; unfinished.path && i < sizeof(stop_signals) / sizeof(stop_signals[0]);
	     i++)
		if (!sigaction(stop_signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(stop_signals[i], &action, NULL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return unfinished.descriptor;
}

/* The stream of dump or restore. 0, or -1 after a message. */
static int open_stream(struct rxvol *rxvol)
{
	bool dump = !strcmp(rxvol->command, "dump");
	int standard = dump ? STDOUT_FILENO : STDIN_FILENO;

	if (!rxvol->file && isatty(standard))
		return tools_fail(-1, "a dump is no text: give --file FILE, or %s it by a pipe",
				  dump ? "take" : "give");
	/* No dump takes the place of an older one before it is complete. */
	rxvol->directory = !rxvol->file ? fcntl(standard, F_DUPFD_CLOEXEC, 3)
			   : dump	? make_dump_file(rxvol->file)
					: open(rxvol->file, O_RDONLY | O_CLOEXEC);
	if (rxvol->directory >= 0)
		return check_stream(rxvol, dump);
	return tools_fail(-1, "%s: %s%s", rxvol->file ? rxvol->file : "the stream", strerror(errno),
			  errno == EEXIST ? "; give another name, or remove it" : "");
}

/* A part of a dump is of no use; a complete one is on stable storage. 0, or -1 after a message. */
static int end_stream(const struct rxvol *rxvol)
{
	bool complete = rxvol->result != NULL;
	struct sigaction old;

	if (!unfinished.path)
		return 0;
	if (complete && fsync(rxvol->directory)) {
		tools_error("%s: cannot be written: %s", rxvol->file, strerror(errno));
		complete = false;
	}
	if (!complete && !drop_unfinished())
		tools_error("%s: is incomplete; remove it", rxvol->file);
	for (size_t i = 0; i < sizeof(stop_signals) / sizeof(stop_signals[0]); i++)
		if (!sigaction(stop_signals[i], NULL, &old) && old.sa_handler == stop_dump)
			signal(stop_signals[i], SIG_DFL);
	return rxvol->result && !complete ? -1 : 0;
}

/*
 * The user of the store may not be able to read what root imports, such as closed home directories. So
 * a second process stays root. It opens files below the directory and passes their descriptors through
 * a socket, which this process and the server have in place of the directory. It ends when the last
 * copy of the socket is closed. 0, or -1 after a message.
 */
static int leave_reader(struct rxvol *rxvol)
{
	int pair[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return tools_fail(-1, "socketpair: %s", strerror(errno));
	child = fork();
	if (child < 0) {
		tools_error("fork: %s", strerror(errno));
		close(pair[0]);
		close(pair[1]);
		return -1;
	}
	if (!child) {
		close(pair[0]);
		admin_lend(pair[1], rxvol->directory);
		_exit(0);
	}
	close(pair[1]);
	close(rxvol->directory);
	rxvol->directory = pair[0];
	return 0;
}

/* Without write access, an export would skip each name at the top. 0, or -1 after a message. */
static int check_export_directory(const struct rxvol *rxvol)
{
	if (strcmp(rxvol->command, "export") ||
	    faccessat(rxvol->directory, ".", W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	return tools_fail(
		-1,
		"%s: the store belongs to the user %u, who cannot write there: %s; give a directory "
		"that does not exist yet, or one that this user may write",
		rxvol->local, (unsigned)geteuid(), strerror(errno));
}

/* Everything that can fail before a store is touched. 0, or -1 after a message. */
static int prepare_session(struct rxvol *rxvol)
{
	struct stat st = {0};

	if (find_store_owner(rxvol, &st) || rxvol_check_owner(rxvol->store, st.st_uid) ||
	    (rxvol->local && open_local_directory(rxvol, &st)) ||
	    (rxvol->stream && open_stream(rxvol)))
		return -1;
	if (rxvol->local && strcmp(rxvol->command, "export") && !geteuid() && st.st_uid &&
	    leave_reader(rxvol))
		return -1;
	if (become_owner(rxvol, &st) || check_export_directory(rxvol))
		return -1;
	if ((rxvol->local || rxvol->stream || !strcmp(rxvol->command, "check")) && !rxvol->quiet &&
	    !rxvol->json && isatty(STDERR_FILENO)) {
		json_object_set_new(rxvol->request, "progress", json_true());
		rxvol->counts = !rxvol->local && !rxvol->stream;
		if (!rxvol->counts)
			progress_start(&rxvol->progress, true, true);
	}
	if (rxvol->json)
		rxvol->faults = json_array();
	return 0;
}

/* -- the store -- */

static void print_store_log(void *arg, int level, const char *line)
{
	(void)arg;
	if (level <= 4)
		tools_error("%s", line);
}

static struct store_options store_options_of(const struct rxvol *rxvol)
{
	return (struct store_options){
		.path = rxvol->store,
		.copy = rxvol->copy,
		.durability = STORE_LAZY, /* each request ends with a flush */
		.log = print_store_log,
	};
}

static int make_store(struct rxvol *rxvol)
{
	struct store_options options = store_options_of(rxvol);
	char message[STORE_MESSAGE_MAX];

	if (store_make(&options, message))
		return tools_fail(-1, "%s", message);
	rxvol->made = true;
	return 0;
}

static bool has_format_file(const char *store)
{
	int directory = open(store, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool has = directory >= 0 && faccessat(directory, "FORMAT", F_OK, AT_EACCESS) == 0;

	if (directory >= 0)
		close(directory);
	return has;
}

int rxvol_init(struct rxvol *rxvol)
{
	if (prepare_session(rxvol))
		return TOOLS_EXIT_FAILURE;
	if (has_format_file(rxvol->store))
		return tools_fail(TOOLS_EXIT_FAILURE,
				  "%s: has a store already; \"rxvol list\" shows its volumes",
				  rxvol->store);
	if (make_store(rxvol))
		return TOOLS_EXIT_FAILURE;
	if (rxvol->json)
		return tools_json_print(json_pack("{s:s}", "store", rxvol->store)) ? 1 : 0;
	printf("made the store %s\n", rxvol->store);
	return 0;
}

static void execute_here(struct rxvol *rxvol, struct store *store)
{
	struct admin_options options = {.store = store, .directory = rxvol->store};
	struct admin_output output = {
		.answer = take_answer,
		.arg = rxvol,
		.directory = rxvol->directory,
	};

	rxvol->status = admin_execute(&options, rxvol->request, &output);
}

/*
 * Execute the request here if the store can be had, else at its server. 0; -EBUSY: neither; -1:
 * after a message.
 */
static int attempt_request(struct rxvol *rxvol)
{
	struct store_options options = store_options_of(rxvol);
	char message[STORE_MESSAGE_MAX];
	struct store *store;
	int rc = store_open(&options, &store, message);

	if (rc == -ENOENT && !strcmp(rxvol->command, "create")) {
		if (make_store(rxvol))
			return -1;
		rc = store_open(&options, &store, message);
	}
	if (rc == -EBUSY)
		return ask_server(rxvol) ? -EBUSY : 0;
	if (rc)
		return tools_fail(-1, "%s", message);
	execute_here(rxvol, store);
	store->ops->close(store);
	return 0;
}

/* 0 after an answer, else an exit status after a message. */
static int run_session(struct rxvol *rxvol)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000};
	uint64_t start = monotonic_ns();
	int rc;

	if (prepare_session(rxvol))
		return TOOLS_EXIT_FAILURE;
	/*
	 * Another rxvol has the store for a moment. A server that starts or stops takes no
	 * requests.
	 */
	while ((rc = attempt_request(rxvol)) == -EBUSY && monotonic_ns() - start < PATIENCE_NS)
		nanosleep(&pause, NULL);
	if (rc == -EBUSY)
		tools_error("%s: another process has the store open, and takes no requests at "
			    "%s/" ADMIN_SOCKET ": wait until it ends, or stop it",
			    rxvol->store, rxvol->store);
	if (rc)
		return TOOLS_EXIT_FAILURE;
	if (!rxvol->result && !rxvol->failed)
		return tools_fail(
			TOOLS_EXIT_FAILURE,
			"no result: the server of %s ended or closed the connection; see its log",
			rxvol->store);
	return 0;
}

int rxvol_session(struct rxvol *rxvol)
{
	int status = run_session(rxvol);

	if (end_stream(rxvol) && !status)
		status = TOOLS_EXIT_FAILURE;
	if (status)
		return status;
	/* A failed export leaves its directory empty. */
	if (rxvol->failed && rxvol->made_directory)
		rmdir(rxvol->local);
	return rxvol->result ? rxvol_show(rxvol) : rxvol->status;
}
