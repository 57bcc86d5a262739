/* SPDX-License-Identifier: BSD-2-Clause */
/* A list of the calls of the file service that have not been answered. */
#include <assert.h>
#include <stdio.h>

#include "fileserver/base/base.h"
#include "fileserver/service/services.h"
#include "program/address.h"

#define LOGGED_MOST 16u

void fsd_running_add(struct fsd_running *running, struct fsd_running_call *call)
{
	assert(!call->link);
	pthread_mutex_lock(&running->lock);
	call->next = running->first;
	call->link = &running->first;
	if (call->next)
		call->next->link = &call->next;
	running->first = call;
	pthread_mutex_unlock(&running->lock);
}

void fsd_running_remove(struct fsd_running *running, struct fsd_running_call *call)
{
	pthread_mutex_lock(&running->lock);
	if (call->link) {
		assert(*call->link == call);
		*call->link = call->next;
		if (call->next)
			call->next->link = call->link;
		call->link = NULL;
	}
	pthread_mutex_unlock(&running->lock);
}

void fsd_service_log_running(struct fsd_service *service)
{
	struct fsd_running *running = &service->running;
	uint64_t now = fsd_now();
	unsigned count = 0;

	pthread_mutex_lock(&running->lock);
	for (const struct fsd_running_call *call = running->first; call; call = call->next) {
		char peer[TOOLS_ADDRESS_TEXT];

		if (++count > LOGGED_MOST)
			continue;
		tools_address_text(&call->peer, peer, sizeof(peer));
		fsd_log(RXW_LOG_ERROR, "still running: %s from %s, for %llu s", call->procedure,
			peer, (unsigned long long)(now - call->since));
	}
	pthread_mutex_unlock(&running->lock);
	if (count > LOGGED_MOST)
		fsd_log(RXW_LOG_ERROR, "still running: %u more calls", count - LOGGED_MOST);
	if (!count)
		fsd_log(RXW_LOG_ERROR, "no call is still running; another thread is blocked");
}
