/* SPDX-License-Identifier: BSD-2-Clause */
/* The client, for one server or for several with the same values. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "servers.h"

static struct servers servers = {.program = "kv-client"};

/* -- put: arguments, then the value as raw bytes ---------------------------------------------- */

/* Returns the code of the call. 0: the caller owns *entry. *wrong: a local error, or NULL. */
static int32_t put_to(rxw_connection *to, const char *key, kv_how how, int fd, uint64_t size,
		      kv_entry *entry, const char **wrong)
{
	rxw_call *call;
	ssize_t sent;
	int32_t code = rxw_rpc_begin(to, NULL, &call);

	*wrong = NULL;
	if (code)
		return code;
	code = StartKV_Put(call, key, how, size);
	if (!code) {
		sent = rxw_call_sendfile(call, fd, 0, size);
		if (sent == -RXW_ESYS)
			*wrong = strerror(errno);
		else if (sent >= 0 && (uint64_t)sent < size)
			*wrong = "it was truncated while it was sent";
		if (sent != (ssize_t)size)
			code = RXW_USER_ABORT; /* the call's own code takes precedence */
	}
	if (!code)
		code = EndKV_Put(call, entry);
	code = rxw_rpc_end(call, code, &KV_interface, KV_FN_Put);
	if (code)
		xdrfree_kv_entry(entry);
	return code;
}

/* To all servers, one after another. */
static int put(const char *key, const char *path, kv_how how)
{
	int status = 0, fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		fprintf(stderr, "kv-client: %s: %s\n", path, strerror(errno));
		return 1;
	}
	if (!S_ISREG(st.st_mode)) {
		fprintf(stderr, "kv-client: %s: not a regular file\n", path);
		close(fd);
		return 1;
	}
	for (unsigned i = 0; i < servers.count; i++) {
		kv_entry entry = {0};
		const char *wrong;
		int32_t code = put_to(servers.connection[i], key, how, fd, (uint64_t)st.st_size,
				      &entry, &wrong);

		if (wrong)
			fprintf(stderr, "kv-client: %s: %s\n", path, wrong);
		if (code)
			status = servers_complain(&servers, "put", i, key, code);
		else
			printf("%s: %s: %" PRIu64 " bytes, version %" PRIu32 "\n", servers.name[i],
			       entry.key, entry.size, entry.version);
		xdrfree_kv_entry(&entry);
	}
	close(fd);
	return status;
}

/* -- stat and remove: one procedure on all servers at once ------------------------------------ */

struct question {
	const char *what, *key;
	unsigned best; /* the server with the newest version */
	uint32_t version;
	bool quiet;
	int status;
};

/* Called once per reply, in order of arrival. The caller frees the entry afterwards. */
static void stat_answer(void *arg, unsigned index, int32_t code, kv_entry *entry)
{
	struct question *question = arg;

	if (code) {
		if (!question->quiet)
			servers_complain(&servers, question->what, index, question->key, code);
		question->status = code;
		return;
	}
	if (!question->quiet)
		printf("%s: %s: %" PRIu64 " bytes, version %" PRIu32 "\n", servers.name[index],
		       entry->key, entry->size, entry->version);
	if (entry->version > question->version) {
		question->version = entry->version;
		question->best = index;
	}
}

static int stat_key(struct question *question)
{
	if (multi_KV_Stat(servers.connection, servers.count, question->key, stat_answer,
			  question)) {
		fprintf(stderr, "kv-client: no memory to ask %u servers\n", servers.count);
		exit(1);
	}
	return question->status != 0;
}

static void remove_answer(void *arg, unsigned index, int32_t code)
{
	struct question *question = arg;

	if (code)
		question->status =
			servers_complain(&servers, question->what, index, question->key, code);
}

static int remove_key(struct question *question)
{
	if (multi_KV_Remove(servers.connection, servers.count, question->key, remove_answer,
			    question)) {
		fprintf(stderr, "kv-client: no memory to ask %u servers\n", servers.count);
		exit(1);
	}
	return question->status != 0;
}

/* -- get: the value as raw bytes, then the results -------------------------------------------- */

/* Writes the bytes to `out` as they arrive. *wrong: a local error, or NULL. */
static int32_t get_from(rxw_connection *from, const char *key, FILE *out, kv_entry *entry,
			const char **wrong)
{
	rxw_call *call;
	uint8_t size[8], piece[65536];
	uint64_t left = 0;
	int32_t code = rxw_rpc_begin(from, NULL, &call);

	*wrong = NULL;
	if (code)
		return code;
	code = StartKV_Get(call, key);
	if (!code && rxw_call_read(call, size, sizeof(size)) != sizeof(size))
		code = RXW_RPC_CC_UNMARSHAL;
	if (!code)
		left = rxw_xdr_load64(size);
	while (!code && left) {
		size_t want = left < sizeof(piece) ? left : sizeof(piece);
		ssize_t n = rxw_call_read_some(call, piece, want);

		if (n <= 0) {
			code = RXW_RPC_CC_UNMARSHAL; /* the call's own code takes precedence */
		} else if (fwrite(piece, 1, (size_t)n, out) != (size_t)n) {
			*wrong = strerror(errno);
			code = RXW_USER_ABORT;
		} else {
			left -= (uint64_t)n;
		}
	}
	if (!code)
		code = EndKV_Get(call, entry);
	code = rxw_rpc_end(call, code, &KV_interface, KV_FN_Get);
	if (code)
		xdrfree_kv_entry(entry);
	return code;
}

/* From the server with the newest version. The file appears when it is complete. */
static int get(const char *key, const char *path)
{
	struct question question = {.what = "get", .key = key, .quiet = true};
	char part[PATH_MAX] = "";
	FILE *out = stdout;
	kv_entry entry = {0};
	const char *wrong;
	int32_t code;

	if (servers.count > 1)
		stat_key(&question);
	if (path) {
		snprintf(part, sizeof(part), "%s.part", path);
		out = fopen(part, "wbe");
	}
	if (!out) {
		fprintf(stderr, "kv-client: %s: %s\n", part, strerror(errno));
		return 1;
	}
	code = get_from(servers.connection[question.best], key, out, &entry, &wrong);
	if ((path ? fclose(out) : fflush(out)) && !wrong)
		wrong = strerror(errno);
	if (path && !wrong && !code && rename(part, path))
		wrong = strerror(errno);
	if (wrong)
		fprintf(stderr, "kv-client: get: %s: %s\n", path ? path : "standard output", wrong);
	else if (code)
		servers_complain(&servers, "get", question.best, key, code);
	xdrfree_kv_entry(&entry);
	if (path && (wrong || code))
		unlink(part);
	return wrong || code;
}

/* -- list: a blocking call for each page ------------------------------------------------------ */

static int list(void)
{
	char after[KV_KEYMAX + 1] = "";

	for (;;) {
		kv_entries entries;
		int32_t code = KV_List(servers.connection[0], after, &entries);

		if (code)
			return servers_complain(&servers, "ls", 0, after, code);
		for (uint32_t i = 0; i < entries.len; i++)
			printf("%10" PRIu64 " %s\n", entries.val[i].size, entries.val[i].key);
		if (!entries.len)
			return 0;
		strcpy(after, entries.val[entries.len - 1].key); /* its bound is KV_KEYMAX */
		xdrfree_kv_entries(&entries);
	}
}

/* -- the command line ------------------------------------------------------------------------- */

static int usage(FILE *to)
{
	fprintf(to,
		"usage: kv-client [-s HOST[:PORT]]... COMMAND\n"
		"  put KEY FILE       store the bytes of a file, on all servers\n"
		"  create KEY FILE    the same; fails if the value exists\n"
		"  replace KEY FILE   the same; fails if no such value exists\n"
		"  get KEY [FILE]     write the newest value to a file or to standard output\n"
		"  stat KEY           show which servers have it, and its size\n"
		"  rm KEY             remove it from all servers\n"
		"  ls                 list the values of the first server\n");
	return to == stdout ? 0 : 2;
}

static int run(int argc, char **argv)
{
	const char *command = argv[0];
	struct question question = {.what = command, .key = argv[1]};

	if (argc == 3 && !strcmp(command, "put"))
		return put(argv[1], argv[2], KV_SET);
	if (argc == 3 && !strcmp(command, "create"))
		return put(argv[1], argv[2], KV_CREATE);
	if (argc == 3 && !strcmp(command, "replace"))
		return put(argv[1], argv[2], KV_REPLACE);
	if ((argc == 2 || argc == 3) && !strcmp(command, "get"))
		return get(argv[1], argv[2]);
	if (argc == 2 && !strcmp(command, "stat"))
		return stat_key(&question);
	if (argc == 2 && !strcmp(command, "rm"))
		return remove_key(&question);
	if (argc == 1 && !strcmp(command, "ls"))
		return list();
	return usage(stderr);
}

int main(int argc, char **argv)
{
	int option, status;

	while ((option = getopt(argc, argv, "s:h")) != -1) {
		if (option == 'h')
			return usage(stdout);
		if (option != 's')
			return usage(stderr);
		if (servers.count == SERVERS_MAX) {
			fprintf(stderr, "kv-client: at most %d servers\n", SERVERS_MAX);
			return 2;
		}
		servers.name[servers.count++] = optarg;
	}
	if (optind == argc)
		return usage(stderr);
	servers_open(&servers);
	status = run(argc - optind, argv + optind);
	servers_close(&servers);
	return status;
}
