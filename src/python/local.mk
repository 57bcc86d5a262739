# SPDX-License-Identifier: BSD-2-Clause
# The Python package rxwire, for modules that `rxwgen --python` writes: doc/python.md. Nothing is compiled.

python_files = \
	src/python/rxwire/__init__.py \
	src/python/rxwire/_abi.py \
	src/python/rxwire/aio.py \
	src/python/rxwire/core.py \
	src/python/rxwire/errors.py \
	src/python/rxwire/rpc.py \
	src/python/rxwire/xdr.py
EXTRA_DIST += $(python_files)

if PYTHON_PACKAGE
rxwirepydir = $(pythondir)/rxwire
rxwirepy_DATA = $(python_files)
endif
