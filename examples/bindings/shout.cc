// SPDX-License-Identifier: BSD-2-Clause
// The client of shout-server in C++17. Objects of the library are released at the end of their scope. Errors are
// exceptions.
//
//   shout HOST PORT TEXT
#include <netdb.h>
#include <rxwire/rxwire.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

constexpr std::uint16_t service_id = 4000;
constexpr std::uint32_t op_shout = 1;

void check(ssize_t result, const char *what)
{
	if (result < 0)
		throw std::runtime_error(std::string("cannot ") + what + ": " +
					 rxw_strerror(static_cast<int>(result)));
}

// Deleter: releases an object of the library.
struct release {
	void operator()(rxw_engine *engine) const { rxw_engine_destroy(engine); }
	void operator()(rxw_endpoint *endpoint) const { rxw_endpoint_destroy(endpoint); }
	void operator()(rxw_connection *connection) const { rxw_connection_release(connection); }
	void operator()(rxw_call *call) const { rxw_call_end(call, RXW_USER_ABORT, nullptr); }
	void operator()(addrinfo *info) const { freeaddrinfo(info); }
};
template <typename T> using scoped = std::unique_ptr<T, release>;

scoped<rxw_engine> make_engine()
{
	rxw_engine *engine = nullptr;

	check(rxw_engine_create(nullptr, &engine), "create the engine");
	return scoped<rxw_engine>(engine);
}

scoped<rxw_endpoint> make_endpoint(rxw_engine *engine, int family, socklen_t length)
{
	sockaddr_storage any{};
	rxw_endpoint_options options{};
	rxw_endpoint *endpoint = nullptr;

	any.ss_family = static_cast<sa_family_t>(family);
	options.size = sizeof(options);
	options.address = reinterpret_cast<sockaddr *>(&any);
	options.address_len = length;
	check(rxw_endpoint_create(engine, &options, &endpoint), "open a port");
	return scoped<rxw_endpoint>(endpoint);
}

std::string shout(rxw_connection *connection, const std::string &text)
{
	std::array<std::uint8_t, 4096> buffer{};
	std::array<char, 4096> shouted{};
	std::uint32_t length = 0;
	rxw_call *begun = nullptr;
	rxw_xdr x;

	rxw_xdr_writer(&x, buffer.data(), buffer.size());
	rxw_xdr_put_u32(&x, op_shout);
	if (!rxw_xdr_put_string(&x, text.c_str(), UINT32_MAX))
		throw std::length_error("the text is too long");
	check(rxw_call_begin(connection, nullptr, &begun), "begin a call");
	scoped<rxw_call> call(begun);
	ssize_t n = rxw_call_write(call.get(), buffer.data(), rxw_xdr_used(&x));

	if (n >= 0)
		n = rxw_call_read(call.get(), buffer.data(), buffer.size()); // until the reply ends
	// End the call explicitly, to get its code.
	if (std::int32_t code = rxw_call_end(call.release(), 0, nullptr))
		throw std::runtime_error(rxw_code_text(code));
	rxw_xdr_reader(&x, buffer.data(), static_cast<std::size_t>(n));
	if (!rxw_xdr_get_u32(&x, &length) || !rxw_xdr_copy_string(&x, shouted.size() - 1, shouted.data()))
		throw std::runtime_error("cannot decode the reply");
	return std::to_string(length) + " bytes: " + shouted.data();
}

} // namespace

int main(int argc, char **argv)
try {
	addrinfo hints{}, *found = nullptr;
	rxw_connection *made = nullptr;

	hints.ai_socktype = SOCK_DGRAM;
	if (argc != 4 || getaddrinfo(argv[1], argv[2], &hints, &found)) {
		std::cerr << "usage: shout HOST PORT TEXT\n";
		return 2;
	}
	// Released in reverse order: connection, endpoint, engine.
	scoped<addrinfo> to(found);
	auto engine = make_engine();
	auto endpoint = make_endpoint(engine.get(), to->ai_family, to->ai_addrlen);

	check(rxw_connection_create(endpoint.get(), to->ai_addr, to->ai_addrlen, service_id, nullptr, &made),
	      "make a connection");
	scoped<rxw_connection> connection(made);

	std::cout << shout(connection.get(), argv[3]) << '\n';
	return 0;
} catch (const std::exception &e) {
	std::cerr << "shout: " << e.what() << '\n';
	return 1;
}
