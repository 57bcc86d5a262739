/* SPDX-License-Identifier: BSD-2-Clause */
/* The client library of AFS, in one header. See librxafs(3). */
#ifndef RXAFS_RXAFS_H
#define RXAFS_RXAFS_H

#include <rxafs/admin.h>
#include <rxafs/client.h>
#include <rxafs/file.h>
#include <rxafs/object.h>
#include <rxafs/path.h>
#include <rxafs/queue.h>
#include <rxafs/stream.h>
#include <rxafs/types.h>
#include <rxafs/watch.h>

#endif
