/* SPDX-License-Identifier: BSD-2-Clause */
/* The log of a mount. */
#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>

#include "program/message.h"
#include "rxafs/mount.h"

/* To the journal with its priority, else to a terminal, or to the system's log from the background. */
void mount_log_line(void *arg, int priority, const char *text)
{
	const struct mount *mount = arg;

	if (priority > mount->log_level)
		return;
	if (!mount->foreground)
		syslog(priority, "%s: %s", mount->where, text);
	else if (tools_stderr_is_journal())
		fprintf(stderr, "<%d>%s: %s\n", priority, mount->where, text);
	else
		tools_error("%s: %s", mount->where, text);
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
