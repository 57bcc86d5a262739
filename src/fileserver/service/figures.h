/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of the file server, for Prometheus and for the log. */
#ifndef FILESERVER_FIGURES_H
#define FILESERVER_FIGURES_H

#include <stdatomic.h>
#include <stdint.h>

#include "fileserver/service/service.h"

/* Times that the keys of the service were read. */
struct fsd_key_loads {
	_Atomic uint64_t good, bad;
	_Atomic int64_t time; /* of the last good one, seconds since 1970; 0: there are no keys */
};

/*
 * All of it in the text format of Prometheus; to be freed. NULL: no memory. Any thread, while the
 * service has its clients and readers.
 */
char *fsd_figures_text(const struct fsd_service *service, const struct fsd_key_loads *keys,
		       uint64_t promises_limit);

/* The same as log lines. */
void fsd_figures_log(const struct fsd_service *service);

#endif
