/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes with an operation: for whom it is done, until when, and how it failed. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/fs/fs.h"

uint64_t rxafs_now(void)
{
	return cl_net_now();
}

rxafs_cancel *rxafs_create_cancel(void)
{
	return cl_cancel_create();
}

void rxafs_raise_cancel(rxafs_cancel *cancel)
{
	cl_cancel_raise(cancel);
}

void rxafs_free_cancel(rxafs_cancel *cancel)
{
	if (cancel)
		cl_cancel_free(cancel);
}

void fs_log(rxafs_client *client, int priority, const char *format, ...)
{
	char text[512];
	va_list args;

	if (!client->log)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	client->log(client->log_arg, priority, text);
}

int fs_fail(struct rxafs_request *request, int result, const char *text)
{
	request->failure = (struct rxafs_failure){.number = -result};
	snprintf(request->failure.text, sizeof request->failure.text, "%s", text);
	return result;
}

const char *rxafs_error_text(struct rxafs_request *request, int64_t result)
{
	struct rxafs_failure *failure = &request->failure;

	if (failure->number != -result || !failure->text[0]) {
		*failure = (struct rxafs_failure){.number = (int)-result};
		snprintf(failure->text, sizeof failure->text, "%s", strerror((int)-result));
	}
	return failure->text;
}

struct cl_caller fs_caller(rxafs_client *client, const struct rxafs_request *request)
{
	(void)client;
	return (struct cl_caller){.identity = request->user ? request->user->identity : NULL,
				  .deadline = request->deadline,
				  .cancel = request->cancel};
}

uint32_t fs_identity(const struct rxafs_request *request, uint32_t cell)
{
	return request->user ? cl_identity_number(request->user->identity, cell) : 0;
}
