/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures of a mount, for Prometheus. */
#ifndef RXAFS_FIGURES_H
#define RXAFS_FIGURES_H

/* Of the struct mount; to be freed. NULL: no memory. Any thread. */
char *figures_text(void *mount);

#endif
