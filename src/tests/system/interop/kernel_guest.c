/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper in the guest of `kernel`, linked statically: keys, locks, and single system calls
 * whose error is printed by name.
 *
 *   guest with KEY CELL COMMAND...
 *       runs a command in a session whose token for CELL is the file KEY
 *   guest expiring KEY CELL COMMAND...
 *       the same; the token expires as the command begins
 *   guest mount VOLUME DIR [OPTIONS]
 *       (busybox takes "#" for a comment)
 *   guest try CALL PATH [PATH]
 *       makes a system call and prints "ok", or the error's name
 *   guest lock KIND PATH
 *       the same for flock-shared, flock-exclusive, read or write, without waiting
 *   guest map PATH
 *       writes a file to the standard output from a mapping
 *   guest slow PATH FIFO
 *       copies a file: its first 64 KiB, then, once FIFO has been opened for writing, the rest
 *   request-key create KEY ...
 *       run by the kernel: answers a request for a cell's servers from /cells
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define FIRST 65536

static long keyctl(int operation, long a, long b, long c, long d)
{
	return syscall(SYS_keyctl, operation, a, b, c, d);
}

/* Prints "ok", or the name of the error; returns the exit status. */
static int tell(int result)
{
	const char *name = result < 0 ? strerrorname_np(errno) : "ok";

	puts(name ? name : strerror(errno));
	return result < 0;
}

static int fail(const char *what)
{
	fprintf(stderr, "guest: %s: %s\n", what, strerror(errno));
	return 99;
}

static int with(char **argv, int expiring)
{
	char payload[16384], name[300];
	int fd = open(argv[2], O_RDONLY);
	ssize_t size = fd < 0 ? -1 : read(fd, payload, sizeof(payload));
	long key;

	if (size < 0)
		return fail(argv[2]);
	close(fd);
	snprintf(name, sizeof(name), "afs@%s", argv[3]);
	if (keyctl(KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0) < 0)
		return fail("session keyring");
	key = syscall(SYS_add_key, "rxrpc", name, payload, size, KEY_SPEC_SESSION_KEYRING);
	if (key < 0)
		return fail("add_key");
	if (expiring) {
		const struct timespec over = {.tv_sec = 2};

		if (keyctl(KEYCTL_SET_TIMEOUT, key, 1, 0, 0) < 0)
			return fail("timeout of the key");
		nanosleep(&over, NULL);
	}
	execvp(argv[4], argv + 4);
	return fail(argv[4]);
}

static int try_call(const char *call, const char *path, const char *other)
{
	const struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};

	if (!strcmp(call, "read"))
		return tell(open(path, O_RDONLY));
	if (!strcmp(call, "list"))
		return tell(open(path, O_RDONLY | O_DIRECTORY));
	if (!strcmp(call, "stat"))
		return tell(access(path, F_OK));
	if (!strcmp(call, "write"))
		return tell(open(path, O_WRONLY));
	if (!strcmp(call, "append"))
		return tell(open(path, O_WRONLY | O_APPEND));
	if (!strcmp(call, "create"))
		return tell(open(path, O_WRONLY | O_CREAT | O_EXCL, 0644));
	if (!strcmp(call, "truncate"))
		return tell(truncate(path, 0));
	if (!strcmp(call, "mkdir"))
		return tell(mkdir(path, 0755));
	if (!strcmp(call, "rmdir"))
		return tell(rmdir(path));
	if (!strcmp(call, "unlink"))
		return tell(unlink(path));
	if (!strcmp(call, "chmod"))
		return tell(chmod(path, 0600));
	if (!strcmp(call, "chown"))
		return tell(chown(path, 1, 1));
	if (!strcmp(call, "utime"))
		return tell(utimensat(AT_FDCWD, path, times, 0));
	if (!strcmp(call, "rename"))
		return tell(rename(path, other));
	if (!strcmp(call, "link"))
		return tell(link(path, other));
	if (!strcmp(call, "symlink"))
		return tell(symlink(path, other));
	errno = ENOSYS;
	return tell(-1);
}

static int lock(const char *kind, const char *path)
{
	int writes = !strcmp(kind, "write"), fd = open(path, writes ? O_RDWR : O_RDONLY);
	struct flock region = {.l_type = writes ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};

	if (fd < 0)
		return tell(-1);
	if (!strcmp(kind, "flock-shared"))
		return tell(flock(fd, LOCK_SH | LOCK_NB));
	if (!strcmp(kind, "flock-exclusive"))
		return tell(flock(fd, LOCK_EX | LOCK_NB));
	return tell(fcntl(fd, F_SETLK, &region));
}

static int write_all(const char *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(1, bytes, size);

		if (n <= 0)
			return fail("write");
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

static int map(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *bytes;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail(path);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	return bytes == MAP_FAILED ? fail("mmap") : write_all(bytes, (size_t)st.st_size);
}

static int slow(const char *path, const char *fifo)
{
	static char bytes[FIRST];
	int fd = open(path, O_RDONLY), rc = 0;
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	if (n < 0)
		return fail(path);
	rc = write_all(bytes, (size_t)n);
	if (open(fifo, O_RDONLY) < 0)
		return fail(fifo);
	while (!rc && (n = read(fd, bytes, sizeof(bytes))) > 0)
		rc = write_all(bytes, (size_t)n);
	return n < 0 ? fail("read") : rc;
}

/* The address of a cell's server, from lines "CELL ADDRESS" of /cells. */
static int find_cell(const char *cell, struct in_addr *address)
{
	char name[256], text[64];
	FILE *file = fopen("/cells", "r");
	int found = 0;

	while (file && !found && fscanf(file, "%255s %63s", name, text) == 2)
		found = !strcmp(name, cell) && inet_pton(AF_INET, text, address) == 1;
	if (file)
		fclose(file);
	return found;
}

/* The binary answer to "afsdb:CELL": a list of one server with one IPv4 address, port 7003. */
static int answer(int argc, char **argv)
{
	uint8_t list[64] = {0, 0, 1, 1, 1, 1}, *p = list + 6;
	char description[600], *cell;
	struct in_addr address;
	long key = argc > 2 ? strtol(argv[2], NULL, 10) : 0;

	if (keyctl(KEYCTL_ASSUME_AUTHORITY, key, 0, 0, 0) < 0 ||
	    keyctl(KEYCTL_DESCRIBE, key, (long)description, sizeof(description) - 1, 0) < 0)
		return fail("request for a cell");
	cell = strrchr(description, ':');
	if (strncmp(description, "dns_resolver;", 13) != 0 || !cell ||
	    !find_cell(cell + 1, &address))
		return (int)keyctl(KEYCTL_NEGATE, key, 1, 0, 0);
	*p++ = 1, *p++ = 0;		/* length of its name */
	p += 4;				/* priority, weight */
	*p++ = 7003 & 0xff, *p++ = 7003 >> 8;
	*p++ = 1, *p++ = 1, *p++ = 1, *p++ = 1; /* from configuration, good, UDP, one address */
	*p++ = 's';
	*p++ = 0; /* IPv4 */
	memcpy(p, &address, 4);
	return keyctl(KEYCTL_INSTANTIATE, key, (long)list, p + 4 - list, 0) < 0
		       ? fail("instantiate")
		       : 0;
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *command = argc > 1 ? argv[1] : "";

	if (!strcmp(slash ? slash + 1 : argv[0], "request-key"))
		return answer(argc, argv);
	if (argc > 4 && (!strcmp(command, "with") || !strcmp(command, "expiring")))
		return with(argv, command[0] == 'e');
	if ((argc == 4 || argc == 5) && !strcmp(command, "mount"))
		return tell(mount(argv[2], argv[3], "afs", 0, argc == 5 ? argv[4] : NULL));
	if ((argc == 4 || argc == 5) && !strcmp(command, "try"))
		return try_call(argv[2], argv[3], argc == 5 ? argv[4] : NULL);
	if (argc == 4 && !strcmp(command, "lock"))
		return lock(argv[2], argv[3]);
	if (argc == 3 && !strcmp(command, "map"))
		return map(argv[2]);
	if (argc == 4 && !strcmp(command, "slow"))
		return slow(argv[2], argv[3]);
	fprintf(stderr, "guest: usage: see the source\n");
	return 99;
}
