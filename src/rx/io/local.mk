# SPDX-License-Identifier: BSD-2-Clause
# Floor 2 of librxwire: the system calls. Sources and private headers, one pair a line.

rx_sources +=
