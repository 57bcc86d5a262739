# SPDX-License-Identifier: BSD-2-Clause
# Makes stubs.h from generated headers: a handler for each procedure that returns ANSWER, and a caller of
# each End stub that checks the contract of its results. fuzz_stubs.c defines ANSWER, ZERO(value) and the
# types of the two tables before it includes the file.
# usage: awk -f stubs.awk HEADER... > stubs.h

FNR == 1 { heads = heads "#include \"" FILENAME "\"\n" }

/^struct [A-Za-z0-9_]+_handlers \{/ {
	package = $2
	sub(/_handlers$/, "", package)
	members = ""
	inside = 1
	next
}
inside && /^};/ { inside = 0; finish_package(); next }
inside { text = text " " $0; if (/;/) { handler(text); text = "" } next }

/^int32_t [A-Za-z0-9_]+ExecuteRequest\(/ {
	name = $2
	sub(/\(.*/, "", name)
	services = services "\t{\"" name "\", " name ", &" package "_answers},\n"
}

/^int32_t End[A-Za-z0-9_]+\(rxw_call \*call/ { ending = 1 }
ending { text = text " " $0; if (/;/) { end_stub(text); text = ""; ending = 0 } }

function tidy(s) {
	gsub(/[ \t]+/, " ", s)
	sub(/^ /, "", s)
	return s
}

# int32_t (*NAME)(void *context, rxw_call *call, ...);
function handler(s, name) {
	s = tidy(s)
	gsub(/\/\*[^*]*\*\//, "", s)
	sub(/^.*\(\*/, "(*", s)
	name = s
	sub(/^\(\*/, "", name)
	sub(/\).*/, "", name)
	sub(/^\(\*[A-Za-z0-9_]+\)/, "", s)
	sub(/;.*/, "", s)
	print_later("static int32_t " package "_on_" name s "\n{\n\treturn ANSWER;\n}\n")
	members = members "\t." name " = " package "_on_" name ",\n"
}

function finish_package() {
	print_later("static const struct " package "_handlers " package "_all = {\n" members "};\n" \
		"static struct " package "_service " package "_answers = {.handlers = &" package "_all};\n")
}

# int32_t EndNAME(rxw_call *call, TYPE *a, TYPE *b);
function end_stub(s, name, n, list, i, type, variable, locals, given, filled, failed, freed) {
	s = tidy(s)
	name = s
	sub(/^int32_t /, "", name)
	sub(/\(.*/, "", name)
	sub(/^[^(]*\(/, "", s)
	sub(/\);.*/, "", s)
	n = split(s, list, /, /)
	for (i = 2; i <= n; i++) {
		variable = type = list[i]
		sub(/^.*[ *]/, "", variable)
		sub(/\*[A-Za-z0-9_]+$/, "", type)
		sub(/ $/, "", type)
		locals = locals "\t" type " " variable ";\n"
		given = given ", &" variable
		filled = filled "\tmemset(&" variable ", 0xa5, sizeof(" variable "));\n"
		if (type == "char *") {
			failed = failed "\t\tZERO(" variable ");\n"
			freed = freed "\tfree(" variable ");\n"
		} else if (type ~ /_t$|^char$|^bool$|^float$|^double$|^struct rxw_uuid$/) {
			failed = failed "\t\tZERO(" variable ");\n"
		} else { # zero except for padding: nothing to free
			failed = failed "\t\txdrfree_" type "(&" variable ");\n"
			freed = freed "\txdrfree_" type "(&" variable ");\n"
		}
	}
	print_later("static int32_t of_" name "(rxw_call *call)\n{\n" locals "\tint32_t result;\n\n" filled \
		"\tresult = " name "(call" given ");\n\tif (result) {\n" failed "\t\treturn result;\n\t}\n" freed \
		"\treturn 0;\n}\n")
	ends = ends "\t{\"" name "\", of_" name "},\n"
}

function print_later(s) { body = body s "\n" }

END {
	print "/* Made by stubs.awk from generated headers. */"
	printf "%s\n%s", heads, body
	printf "static const struct served served[] = {\n%s};\n\n", services
	printf "static const struct ended ended[] = {\n%s};\n", ends
}
