# SPDX-License-Identifier: BSD-2-Clause
# Memory, codes and the log: below the other parts.

classic_headers += src/classic/rx/rx_misc.h
classic_sources += src/classic/base/misc.c
