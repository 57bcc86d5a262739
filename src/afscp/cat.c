/* SPDX-License-Identifier: BSD-2-Clause */
/* afscp cat: the contents of files on standard output. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program/message.h"
#include "afscp/commands.h"
#include "afscp/tree.h"

#define LOOK_MS 100		    /* after a signal */
#define PIECE ((uint64_t)1 << 30) /* of one call */

struct output {
	struct run *run;
	bool waits;	  /* it is a pipe, socket or terminal, whose reader may be slow */
	uint64_t written; /* of this file */
	int error;	  /* errno of a failed write */
};

/* Until PIPE_BUF bytes can be written without a wait. False: interrupted. */
static bool wait_for_reader(const struct output *out)
{
	struct pollfd poll_set = {.fd = STDOUT_FILENO, .events = POLLOUT};

	while (!atomic_load(&out->run->interrupted))
		if (poll(&poll_set, 1, LOOK_MS) != 0)
			return true;
	return false;
}

/* Write what follows the bytes that were written already. */
static int write_to_output(void *arg, uint64_t offset, struct iovec *iov, unsigned count)
{
	struct output *out = arg;

	for (unsigned i = 0; i < count; i++) {
		const char *data = iov[i].iov_base;
		uint64_t skip = out->written > offset ? out->written - offset : 0;
		size_t length = iov[i].iov_len;

		offset += length;
		for (size_t done = skip < length ? (size_t)skip : length; done < length;) {
			size_t most =
				out->waits && length - done > PIPE_BUF ? PIPE_BUF : length - done;
			ssize_t n;

			if (out->waits && !wait_for_reader(out))
				return -EINTR;
			n = write(STDOUT_FILENO, data + done, most);
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0) {
				out->error = errno;
				return -ECANCELED;
			}
			done += (size_t)n;
			out->written += (uint64_t)n;
		}
	}
	return 0;
}

static bool report_write_error(struct run *run, int number)
{
	errno = number;
	if (number == EPIPE)
		atomic_store(&run->broken_pipe, true);
	else
		tools_error("cannot write to standard output: %s", strerror(number));
	return false;
}

/* Further calls read on where the last one ended; all of one version. */
static bool copy_out(struct run *run, const struct place *place, rxafs_object *file,
		     uint64_t version)
{
	struct attempt t = attempt_begin(run, CHANGE_NONE, place->text);
	struct stat to;
	struct output out = {.run = run,
			     .waits = fstat(STDOUT_FILENO, &to) < 0 || !S_ISREG(to.st_mode)};
	struct rxafs_attributes a = {.version = 0};
	uint64_t fetched, from;

	t.about = file;
	do {
		do {
			from = out.written;
			fetched = 0;
		} while (attempt_again_unless(&t,
					      rxafs_fetch_stream(file, &t.request, from, PIECE,
								 write_to_output, &out, &fetched,
								 &a),
					      -ECANCELED));
		if (out.error)
			return report_write_error(run, out.error);
		if (t.value < 0)
			return false;
		if (from && a.version != version) {
			tools_error("%s: it has changed while it was read", place->text);
			return false;
		}
		version = a.version;
		/* A server sends less than it is asked for only at the end. */
	} while (out.written < (uint64_t)a.stat.st_size && fetched == PIECE);
	if (out.written == (uint64_t)a.stat.st_size)
		return true;
	tools_error("%s: the server sent %llu bytes of a file of %lld", place->text,
		    (unsigned long long)out.written, (long long)a.stat.st_size);
	return false;
}

static bool cat_place(struct run *run, const struct place *place)
{
	struct rxafs_attributes a;
	rxafs_object *object;
	bool good = false;

	if (place_open(run, place, true, &object, &a) != COPY_GOOD)
		return false;
	if (a.kind == RXAFS_DIRECTORY) {
		tools_error("%s is a directory", place->text);
	} else {
		good = copy_out(run, place, object, a.version);
	}
	rxafs_release(object);
	return good;
}

int run_cat(struct run *run)
{
	int status = 0;

	if (place_expand(run) != COPY_GOOD)
		return TOOLS_EXIT_FAILURE;
	for (size_t i = 0; i < run->place_count && !atomic_load(&run->interrupted); i++) {
		if (!cat_place(run, &run->places[i]))
			status = TOOLS_EXIT_FAILURE;
		if (atomic_load(&run->broken_pipe))
			break;
	}
	return status;
}
