# SPDX-License-Identifier: BSD-2-Clause
# Floor 0 of librxwire: arithmetic, bytes, formats. Sources and private headers, one pair a line.

rx_sources +=
