/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages on stderr. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rxwire/error.h>

#include "common/held.h"
#include "common/utf8.h"
#include "program/message.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *program = "rxwire";
static bool progress_shown;			      /* under the lock */
static void (*listener)(void *arg, const char *text); /* the same */
static void *listener_arg;

static bool journal; /* stderr is the journal's; set before other threads exist */

/*
 * Files that are opened later must not get the descriptors of the standard files. Writing to a
 * closed stdout still fails.
 */
static void open_standard_files(void)
{
	static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) < 0)
			return; /* there is no way to report it */
}

void tools_set_program(const char *name)
{
	program = name;
	open_standard_files();
	journal = tools_stderr_is_journal();
}

bool tools_stderr_is_journal(void)
{
	const char *text = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return text && sscanf(text, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && (unsigned long long)st.st_dev == dev &&
	       (unsigned long long)st.st_ino == ino;
}

/* Errors of stderr are ignored. */
static void write_stderr(const char *text, size_t length)
{
	while (length > 0) {
		ssize_t n = write(STDERR_FILENO, text, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		text += n;
		length -= (size_t)n;
	}
}

/*
 * The prefix and the message, in `small` or, if they are longer, allocated, with room for another
 * character.
 */
static char *format_line(char *small, size_t size, const char *format, va_list args)
	__attribute__((format(printf, 3, 0)));
static char *format_line(char *small, size_t size, const char *format, va_list args)
{
	char *line = small;
	va_list again;
	int used, length;

	assert(mutex_is_held(&lock));
	if (journal) /* the journal knows the name; 3 is an error's priority */
		used = snprintf(line, size, "<3>");
	else
		used = snprintf(line, size, "%s%s: ", progress_shown ? "\n" : "", program);
	va_copy(again, args);
	length = vsnprintf(line + used, size - (size_t)used, format, args);
	if (length > 0 && (size_t)length >= size - (size_t)used) {
		line = malloc((size_t)used + (size_t)length + 2);
		if (line) {
			memcpy(line, small, (size_t)used);
			vsnprintf(line + used, (size_t)length + 1, format, again);
		} else {
			line = small;
		}
	}
	va_end(again);
	return line;
}

char *tools_harmless(char *text)
{
	unsigned char *at = (unsigned char *)text;

	while (*at) {
		size_t length = utf8_character_bytes(at);
		bool control = *at < ' ' || *at == 0x7f || (length == 0 && *at < 0xa0) ||
			       (*at == 0xc2 && length == 2 && at[1] < 0xa0);

		for (size_t i = 0; i < length || i == 0; i++, at++)
			if (control)
				*at = '?';
	}
	return text;
}

void tools_error(const char *format, ...)
{
	int saved = errno;
	char small[1024], *line, *text;
	va_list args;

	pthread_mutex_lock(&lock);
	va_start(args, format);
	line = format_line(small, sizeof(small) - 1, format, args);
	va_end(args);
	/* Names of files and texts of servers end up here. */
	tools_harmless(line + (progress_shown && !journal));
	text = strstr(line, journal ? ">" : ": ");
	if (listener && text)
		listener(listener_arg, text + (journal ? 1 : 2));
	progress_shown = false;
	strcat(line, "\n");
	write_stderr(line, strlen(line));
	if (line != small)
		free(line);
	pthread_mutex_unlock(&lock);
	errno = saved;
}

const char *tools_result_text(int result)
{
	return result == -RXW_ESYS ? strerror(errno) : rxw_strerror(result);
}

void tools_on_error(void (*fn)(void *arg, const char *text), void *arg)
{
	pthread_mutex_lock(&lock);
	listener = fn;
	listener_arg = arg;
	pthread_mutex_unlock(&lock);
}

void tools_progress(const char *text)
{
	char line[512];

	pthread_mutex_lock(&lock);
	if (text) {
		/* Carriage return, text, erase the rest of the old line. */
		snprintf(line, sizeof(line), "\r%s\033[K", text);
		write_stderr(line, strlen(line));
		progress_shown = true;
	} else if (progress_shown) {
		write_stderr("\n", 1);
		progress_shown = false;
	}
	pthread_mutex_unlock(&lock);
}

static int output_error;

void tools_note_output(void)
{
	if (!output_error)
		output_error = errno ? errno : EIO;
}

int tools_output_error(void)
{
	return output_error;
}

int tools_finish(int status)
{
	bool bad = ferror(stdout);

	if (fclose(stdout) != 0)
		tools_note_output();
	if (output_error)
		tools_error("cannot write to standard output: %s", strerror(output_error));
	else if (bad)
		tools_error("cannot write all of it to standard output");
	return bad || output_error ? TOOLS_EXIT_FAILURE : status;
}
