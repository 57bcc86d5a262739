/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of calls that change something else than files. */
#include <assert.h>
#include <rxwire/call.h>

#include "afs/numbers.h"
#include "common/clock.h"
#include "fileserver/audit/audit.h"

int32_t fsd_audit_begin(struct fsd_audit_change *change)
{
	assert(!change->begun);
	change->begun = fsd_audit_reserve(change->audit);
	return change->begun ? 0 : AFS_VBUSY;
}

int32_t fsd_audit_end(struct fsd_audit_change *change, int32_t code)
{
	struct sockaddr_storage peer = {0};
	socklen_t length = sizeof(peer);
	const struct fsd_audit_record record = {
		.time_ns = (int64_t)wall_ns(),
		.peer = &peer,
		.who = change->who,
		.id = change->id,
		.operation = change->operation,
		.volume = change->volume,
		.name = change->name,
		.to_name = change->to_name,
		.code = code,
		.reserved = change->begun,
	};

	if (!change->audit)
		return code;
	rxw_call_peer(change->call, &peer, &length);
	change->begun = false;
	fsd_audit_add(change->audit, &record);
	return code;
}
