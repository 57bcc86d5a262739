/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that answer, for tests that need callback promises. */
#ifndef RXW_TESTS_FILESERVER_ANSWER_H
#define RXW_TESTS_FILESERVER_ANSWER_H

#include "fileserver/callbacks/callbacks.h"

/* Every client that the server calls answers, with capability word 1, until no work is left. */
void answer_all(struct fsd_clients *clients);

#endif
