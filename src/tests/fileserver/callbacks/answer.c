/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that answer. */
#include "tests/fileserver/callbacks/answer.h"

#include "afs/numbers.h"
#include "fileserver/base/base.h"
#include "fileserver/callbacks/clients.h"

void answer_all(struct fsd_clients *clients)
{
	const struct fsd_answer answer = {.caps = CLIENT_CAPABILITY_ERRORTRANS};
	struct fsd_work work;

	while (fsd_work_take(clients, &work, fsd_now()))
		fsd_work_done(clients, &work, &answer, fsd_now());
}
