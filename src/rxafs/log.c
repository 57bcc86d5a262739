/* SPDX-License-Identifier: BSD-2-Clause */
/* The log of a mount. */
#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

#include "program/message.h"
#include "rxafs/mount.h"

#define LINE_MOST 2048

/* To the journal with its priority, else to a terminal, or to the system's log from the background. */
void mount_log_line(void *arg, int priority, const char *text)
{
	const struct mount *mount = arg;
	char line[LINE_MOST];

	if (priority > mount->log_level)
		return;
	/* Servers and users gave parts of it, which must not begin lines of their own. */
	snprintf(line, sizeof line, "%s: %s", mount->where, text);
	tools_harmless(line);
	if (!mount->foreground)
		syslog(priority, "%s", line);
	else if (tools_stderr_is_journal())
		fprintf(stderr, "<%d>%s\n", priority, line);
	else
		tools_error("%s", line);
}

void mount_log(struct mount *mount, int priority, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	mount_log_line(mount, priority, text);
}
