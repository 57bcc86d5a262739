# SPDX-License-Identifier: BSD-2-Clause
# rxafs: the mount daemon, and rxafsctl, which administers it.
