// Certificates: the job's own authority and a certificate for each host, for TLS between workers and servers.
#pragma once

#include <string>
#include <vector>

#include "syncopate/server.hpp"

namespace syncopate::server::rpc {

/// Makes `folder` (readable only by its owner) and in it `authority.pem`, and for each host `NAME.pem` and
/// `NAME-key.pem`: ECDSA on P-256, X.509 v3, all files 0600, valid for `days`. File names consist of letters, digits,
/// '.', '-' and '_'. A host has one or more addresses: "10.0.0.5", "fd00::5", "node5". The authority's key is not
/// stored: more hosts need new certificates for all. Throws Misuse (a name that is not allowed, a folder that exists),
/// SystemFailure.
void make_certificates(const std::string& folder, const std::vector<CertifiedHost>& hosts, int days);

}  // namespace syncopate::server::rpc
